"""binderclip runs any AI agent runtime through an adapter and keeps every byte it printed."""

__version__ = "0.1.0"
