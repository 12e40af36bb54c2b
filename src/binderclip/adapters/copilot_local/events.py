"""Copilot's events that are only noted in the transcript, and those that show nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from binderclip.sdk import as_string


def _message(data: dict[str, Any]) -> str:
    return as_string(data.get("message"))


def _content(data: dict[str, Any]) -> str:
    return as_string(data.get("content"))


def _aborted(data: dict[str, Any]) -> str:
    return f"Aborted: {as_string(data.get('reason')) or 'no reason told'}."


def _compacting(data: dict[str, Any]) -> str:
    return "Compacting the conversation."


def _compacted(data: dict[str, Any]) -> str:
    if data.get("success") is not False:
        return "The conversation was compacted."
    return f"The conversation was not compacted: {as_string(data.get('error')) or 'no reason told'}"


def _model_changed(data: dict[str, Any]) -> str:
    return f"The model is now {as_string(data.get('newModel'))}."


def _agent_failed(data: dict[str, Any]) -> str:
    return f"Sub-agent failed: {as_string(data.get('error'))}"


def _hook_ended(data: dict[str, Any]) -> str:
    if data.get("success") is not False:
        return ""
    error = data.get("error")
    words = as_string(error.get("message")) if isinstance(error, dict) else as_string(error)
    return f"Hook {as_string(data.get('hookType'))} failed: {words}"


def _server_changed(data: dict[str, Any]) -> str:
    error = as_string(data.get("error"))
    return f"MCP server {as_string(data.get('serverName'))}: {error}" if error else ""


def _task_complete(data: dict[str, Any]) -> str:
    return as_string(data.get("summary"))


NOTES: dict[str, Callable[[dict[str, Any]], str]] = {
    "abort": _aborted,
    "hook.end": _hook_ended,
    "hook.progress": _message,
    "session.compaction_complete": _compacted,
    "session.compaction_start": _compacting,
    "session.managed_settings_enforced": _message,
    "session.mcp_server_status_changed": _server_changed,
    "session.model_change": _model_changed,
    "session.task_complete": _task_complete,
    "session.warning": _message,
    "subagent.failed": _agent_failed,
    "system.notification": _content,
}
SILENT = frozenset(
    (
        *("assistant.idle", "assistant.intent", "assistant.message_start"),
        *("assistant.server_tool_progress", "assistant.streaming_delta"),
        *("assistant.tool_call_delta", "assistant.turn_end", "assistant.turn_retry"),
        *("assistant.turn_start", "assistant.usage", "capabilities.changed"),
        *("commands.changed", "external_tool.completed", "external_tool.requested"),
        *("hook.start", "mcp.prompts.list_changed", "mcp.resources.list_changed"),
        *("mcp.tools.list_changed", "model.call_final_result", "model.call_finished"),
        *("pending_messages.modified", "permission.completed", "permission.requested"),
        *("prompt_cache_break", "sandbox.decision", "session.auto_mode_resolved"),
        *("session.background_tasks_changed", "session.binary_asset"),
        *("session.completion_receipt", "session.context_changed"),
        *("session.custom_agents_updated", "session.extensions_loaded", "session.idle"),
        *("session.indexed_search", "session.managed_settings_resolved"),
        *("session.mcp_server_tools_loaded", "session.mcp_servers_loaded"),
        *("session.memory_changed", "session.mode_changed", "session.mode_notice_delivered"),
        *("session.permissions_changed", "session.plan_changed", "session.quota_observation"),
        *("session.remote_steerable_changed", "session.resume", "session.shutdown"),
        *("session.skills_loaded", "session.start", "session.title_changed"),
        *("session.todos_changed", "session.truncation", "session.usage_checkpoint"),
        *("session.usage_info", "session.usage_record", "session.workspace_file_changed"),
        *("skill.context_delivered", "skill.context_delivered_ref", "skill.invoked"),
        *("skill.invoked_ref", "subagent.completed", "subagent.configured"),
        *("subagent.deselected", "subagent.selected", "system.message"),
        *("tool.execution_partial_result", "tool.execution_progress", "tool.shell_output"),
        *("tool.user_requested", "tool_search.activated"),
    )
)
"""What the runtime repeats elsewhere, or tells about its own works."""
