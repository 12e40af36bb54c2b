"""What is kept: run directories, which are the truth, and a database that they can rebuild.

Nothing is imported here, so that a run can start before SQLAlchemy is loaded.
"""
