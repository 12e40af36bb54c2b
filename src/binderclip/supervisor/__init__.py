"""One process per attempt owns the agent's process tree; standard library, Python 3.9+.

Nothing is imported here, so that a supervisor starts in milliseconds: drivers import
`binderclip.supervisor.launch` and `binderclip.supervisor.locks`.
"""
