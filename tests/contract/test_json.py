"""Every contract structure has exactly this JSON, both ways."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import binderclip.contract
from binderclip.contract import (
    agent,
    check,
    checkpoint,
    company,
    config,
    entry,
    event,
    job,
    manifest,
    operation,
    run,
    session,
    task,
    wake,
)
from binderclip.contract.target import ExecutionTarget
from binderclip.contract.wire import (
    Tagged,
    Wire,
    from_json,
    from_plain,
    iso_time,
    to_json,
    to_plain,
)

TS = "2026-01-02T03:04:05.678Z"
HOST: dict[str, Any] = {"id": "1o0.0", "seq": 0, "attempt": 1, "stream": "stdout", "offset": 0}
USAGE = checkpoint.TokenUsage(input_tokens=1, output_tokens=2, total_tokens=3)
USAGE_JSON = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
EXPERT = checkpoint.Expert(key="k", name="n", version="1")
MESSAGE = checkpoint.ExpertMessage(contents=(checkpoint.TextPart(id="p", text="hi"),), timestamp=1)
MESSAGE_JSON = {
    "type": "expertMessage",
    "contents": [{"type": "textPart", "id": "p", "text": "hi"}],
    "timestamp": 1,
}
CHECKPOINT = checkpoint.Checkpoint(
    id="c",
    job_id="j",
    run_id="r",
    status="completed",
    step_number=1,
    messages=(MESSAGE,),
    expert=EXPERT,
    usage=USAGE,
    metadata={"runtime": "codex", "externalExecution": True},
)
CHECKPOINT_JSON = {
    "id": "c",
    "jobId": "j",
    "runId": "r",
    "status": "completed",
    "stepNumber": 1,
    "messages": [MESSAGE_JSON],
    "expert": {"key": "k", "name": "n", "version": "1"},
    "usage": USAGE_JSON,
    "metadata": {"runtime": "codex", "externalExecution": True},
}
NO_BUDGET_JSON = {
    "usd": None,
    "tokens": None,
    "runs": None,
    "minutes": None,
    "period": "month",
}
STEP = event.Step(step_number=1, usage=USAGE, started_at=7)
STEP_JSON = {"stepNumber": 1, "usage": USAGE_JSON, "startedAt": 7, "newMessages": []}
STEP_FIELDS: dict[str, Any] = {
    "id": "e",
    "timestamp": 1,
    "job_id": "j",
    "run_id": "r",
    "expert_key": "k",
    "step_number": 1,
}
STEP_FIELDS_JSON = {
    "id": "e",
    "timestamp": 1,
    "jobId": "j",
    "runId": "r",
    "expertKey": "k",
    "stepNumber": 1,
}
ENDING_JSON = {**STEP_FIELDS_JSON, "checkpoint": CHECKPOINT_JSON, "step": STEP_JSON}
TOOL_USE = event.ToolUse(id="c", skill_name="codex", tool_name="shell", args={"x": 1})
TOOL_USE_JSON = {"id": "c", "skillName": "codex", "toolName": "shell", "args": {"x": 1}}
TOOL_OUTCOME = event.ToolOutcome(id="c", skill_name="codex", tool_name="shell", exit_code=1)
TOOL_OUTCOME_JSON = {"id": "c", "skillName": "codex", "toolName": "shell", "exitCode": 1}
EVENT_ERROR = event.EventError(name="rate_limit", message="m", status_code=429, is_retryable=True)
EVENT_ERROR_JSON = {"name": "rate_limit", "message": "m", "statusCode": 429, "isRetryable": True}
JOB_RUN = job.JobRun(
    id="r",
    job_id="j",
    status="succeeded",
    stopped="completed",
    adapter_type="codex_local",
    runtime="codex",
    expert_key="k",
    cwd="/w",
    started_at=1,
    finished_at=2,
    steps=1,
    events=3,
    usage=USAGE,
    usage_source="reported",
    checkpoints=("r-1",),
)
JOB_RUN_JSON = {
    "id": "r",
    "jobId": "j",
    "status": "succeeded",
    "stopped": "completed",
    "adapterType": "codex_local",
    "runtime": "codex",
    "title": None,
    "expertKey": "k",
    "cwd": "/w",
    "startedAt": 1,
    "finishedAt": 2,
    "steps": 1,
    "events": 3,
    "usage": USAGE_JSON,
    "usageSource": "reported",
    "costUsd": None,
    "prompt": None,
    "continues": None,
    "checkpoints": ["r-1"],
    "model": None,
    "errorCode": None,
    "errorMessage": None,
    "output": None,
}
AGENT = run.AgentRef(id="a", company_id="c", name="Ada", adapter_type="claude_local")
AGENT_JSON = {"id": "a", "companyId": "c", "name": "Ada", "adapterType": "claude_local"}
CAPABILITIES_JSON = {
    "supportsLocalAgentJwt": False,
    "supportsInstructionsBundle": False,
    "instructionsPathKey": "instructionsFilePath",
    "requiresMaterializedRuntimeSkills": False,
    "supportsSkills": False,
}
RESULT = run.ExecutionResult(exit_code=None, signal="SIGTERM", timed_out=True, error_code="timeout")
RESULT_JSON = {"exitCode": None, "signal": "SIGTERM", "timedOut": True, "errorCode": "timeout"}
RUN_USAGE_JSON = {
    "inputTokens": 1,
    "cachedInputTokens": None,
    "cacheWriteTokens": None,
    "outputTokens": None,
    "reasoningTokens": None,
    "source": "reported",
}

EXAMPLES: list[tuple[Wire, dict[str, Any]]] = [
    (
        check.Check(code="cwd_ok", level="info", message="m", detail="d", hint="h"),
        {"code": "cwd_ok", "level": "info", "message": "m", "detail": "d", "hint": "h"},
    ),
    (
        check.CheckRequest(company_id="c", adapter_type="t", config={"a": 1}, depth="live"),
        {"companyId": "c", "adapterType": "t", "config": {"a": 1}, "depth": "live"},
    ),
    (
        check.EnvironmentReport(adapter_type="t", status="pass", checks=(), tested_at=TS),
        {"adapterType": "t", "status": "pass", "checks": [], "testedAt": TS},
    ),
    (EXPERT, {"key": "k", "name": "n", "version": "1"}),
    (MESSAGE.contents[0], {"type": "textPart", "id": "p", "text": "hi"}),
    (MESSAGE, MESSAGE_JSON),
    (
        checkpoint.TokenUsage(
            input_tokens=1,
            output_tokens=2,
            total_tokens=3,
            cached_input_tokens=4,
            reasoning_tokens=5,
        ),
        {**USAGE_JSON, "cachedInputTokens": 4, "reasoningTokens": 5},
    ),
    (CHECKPOINT, CHECKPOINT_JSON),
    (config.FieldOption(value="a", label="A"), {"value": "a", "label": "A"}),
    (
        config.ConfigField(
            key="effort",
            label="Effort",
            type="select",
            options=(config.FieldOption(value="a", label="A"),),
            default="a",
            hint="h",
            required=True,
            group="g",
            dangerous=True,
        ),
        {
            "key": "effort",
            "label": "Effort",
            "type": "select",
            "options": [{"value": "a", "label": "A"}],
            "default": "a",
            "hint": "h",
            "required": True,
            "group": "g",
            "dangerous": True,
        },
    ),
    (config.ConfigSchema(fields=(), json_schema={"x": 1}), {"fields": [], "jsonSchema": {"x": 1}}),
    (entry.Truncated(bytes=9), {"bytes": 9}),
    (
        entry.Init(ts=TS, model="m", session_id="s", **HOST),
        {"kind": "init", "ts": TS, **HOST, "model": "m", "sessionId": "s"},
    ),
    (
        entry.Assistant(ts=TS, text="t", delta=True, parent_tool_use_id="p"),
        {"kind": "assistant", "ts": TS, "text": "t", "delta": True, "parentToolUseId": "p"},
    ),
    (entry.Thinking(ts=TS, text="t"), {"kind": "thinking", "ts": TS, "text": "t"}),
    (entry.User(ts=TS, text="t"), {"kind": "user", "ts": TS, "text": "t"}),
    (
        entry.ToolCall(
            ts=TS, name="Bash", input={"a": [1]}, tool_use_id="u", tool_kind="shell", title="ls"
        ),
        {
            "kind": "tool_call",
            "ts": TS,
            "name": "Bash",
            "input": {"a": [1]},
            "toolUseId": "u",
            "toolKind": "shell",
            "title": "ls",
        },
    ),
    (entry.Attachment(media_type="image/png", ref="r"), {"mediaType": "image/png", "ref": "r"}),
    (
        entry.ToolResult(
            ts=TS,
            tool_use_id="u",
            content="c",
            is_error=True,
            tool_name="Bash",
            exit_code=3,
            duration_ms=12,
            attachments=(entry.Attachment(media_type="image/png", ref="r"),),
            paired_by_guess=True,
        ),
        {
            "kind": "tool_result",
            "ts": TS,
            "toolUseId": "u",
            "content": "c",
            "isError": True,
            "toolName": "Bash",
            "exitCode": 3,
            "durationMs": 12,
            "attachments": [{"mediaType": "image/png", "ref": "r"}],
            "pairedByGuess": True,
        },
    ),
    (
        entry.Result(
            ts=TS,
            text="t",
            input_tokens=1,
            output_tokens=2,
            cached_tokens=3,
            cost_usd=None,
            subtype="success",
            is_error=False,
            errors=("e",),
        ),
        {
            "kind": "result",
            "ts": TS,
            "text": "t",
            "inputTokens": 1,
            "outputTokens": 2,
            "cachedTokens": 3,
            "costUsd": None,
            "subtype": "success",
            "isError": False,
            "errors": ["e"],
        },
    ),
    (entry.Stderr(ts=TS, text="t"), {"kind": "stderr", "ts": TS, "text": "t"}),
    (entry.System(ts=TS, text="t"), {"kind": "system", "ts": TS, "text": "t"}),
    (
        entry.RetryNote(
            cause="overloaded", attempt=1, max_attempts=3, delay_ms=500, status_code=529
        ),
        {
            "cause": "overloaded",
            "attempt": 1,
            "maxAttempts": 3,
            "delayMs": 500,
            "statusCode": 529,
        },
    ),
    (
        entry.Stdout(ts=TS, text="t", truncated=entry.Truncated(bytes=9)),
        {"kind": "stdout", "ts": TS, "text": "t", "truncated": {"bytes": 9}},
    ),
    (
        entry.Diff(ts=TS, change_type="file_header", text="t", tool_use_id="u", path="a.py"),
        {
            "kind": "diff",
            "ts": TS,
            "changeType": "file_header",
            "text": "t",
            "toolUseId": "u",
            "path": "a.py",
        },
    ),
    (
        entry.EntryRecord(entry=entry.User(ts=TS, text="t")),
        {"type": "entry", "entry": {"kind": "user", "ts": TS, "text": "t"}},
    ),
    (entry.AppendRecord(id="1o0.0", text="t"), {"type": "append", "id": "1o0.0", "text": "t"}),
    (
        entry.ReplaceRecord(id="1o0.0", entry=entry.User(ts=TS, text="t")),
        {"type": "replace", "id": "1o0.0", "entry": {"kind": "user", "ts": TS, "text": "t"}},
    ),
    (
        entry.SpentRecord(usage=run.Usage(input_tokens=7)),
        {
            "type": "spent",
            "usage": {
                "inputTokens": 7,
                "cachedInputTokens": None,
                "cacheWriteTokens": None,
                "outputTokens": None,
                "reasoningTokens": None,
                "source": "reported",
            },
        },
    ),
    (entry.TranscriptHead(parser="p", version="1"), {"parser": "p", "version": "1"}),
    (
        entry.Coverage(lines=3, understood=2, unknown=1),
        {"lines": 3, "understood": 2, "unknown": 1},
    ),
    (
        event.InitializeRuntime(
            id="e",
            timestamp=1,
            job_id="j",
            run_id="r",
            runtime_version="external:codex",
            expert_name="n",
            model="codex:default",
        ),
        {
            "type": "initializeRuntime",
            "id": "e",
            "timestamp": 1,
            "jobId": "j",
            "runId": "r",
            "runtimeVersion": "external:codex",
            "expertName": "n",
            "model": "codex:default",
            "experts": [],
            "temperature": 0,
            "maxRetries": 0,
            "timeout": 0,
        },
    ),
    (STEP, STEP_JSON),
    (
        event.CompleteRun(
            id="e",
            timestamp=1,
            job_id="j",
            run_id="r",
            expert_key="k",
            step_number=1,
            checkpoint=CHECKPOINT,
            step=STEP,
            text="t",
            usage=USAGE,
        ),
        {
            "type": "completeRun",
            "id": "e",
            "timestamp": 1,
            "jobId": "j",
            "runId": "r",
            "expertKey": "k",
            "stepNumber": 1,
            "checkpoint": CHECKPOINT_JSON,
            "step": STEP_JSON,
            "text": "t",
            "usage": USAGE_JSON,
        },
    ),
    (
        checkpoint.ToolCallPart(id="p", tool_call_id="c", tool_name="Bash", args={"x": 1}),
        {
            "type": "toolCallPart",
            "id": "p",
            "toolCallId": "c",
            "toolName": "Bash",
            "args": {"x": 1},
        },
    ),
    (
        checkpoint.ToolResultPart(id="p", tool_call_id="c", tool_name="Bash", is_error=True),
        {
            "type": "toolResultPart",
            "id": "p",
            "toolCallId": "c",
            "toolName": "Bash",
            "isError": True,
        },
    ),
    (
        checkpoint.UserMessage(contents=(checkpoint.TextPart(id="p", text="hi"),), timestamp=1),
        {**MESSAGE_JSON, "type": "userMessage"},
    ),
    (
        checkpoint.ToolMessage(contents=(checkpoint.TextPart(id="p", text="hi"),), timestamp=1),
        {**MESSAGE_JSON, "type": "toolMessage"},
    ),
    (
        checkpoint.InstructionMessage(
            contents=(checkpoint.TextPart(id="p", text="hi"),), timestamp=1
        ),
        {**MESSAGE_JSON, "type": "instructionMessage"},
    ),
    (
        event.StartRun(**STEP_FIELDS, session_id="s", resumed_from="r0"),
        {"type": "startRun", **STEP_FIELDS_JSON, "sessionId": "s", "resumedFrom": "r0"},
    ),
    (TOOL_USE, TOOL_USE_JSON),
    (TOOL_OUTCOME, TOOL_OUTCOME_JSON),
    (
        event.CallTools(**STEP_FIELDS, tool_calls=(TOOL_USE,), new_message=MESSAGE),
        {
            "type": "callTools",
            **STEP_FIELDS_JSON,
            "toolCalls": [TOOL_USE_JSON],
            "newMessage": MESSAGE_JSON,
        },
    ),
    (
        event.ResolveToolResults(
            **STEP_FIELDS, tool_results=(TOOL_OUTCOME,), parent_tool_call_id="p"
        ),
        {
            "type": "resolveToolResults",
            **STEP_FIELDS_JSON,
            "toolResults": [TOOL_OUTCOME_JSON],
            "parentToolCallId": "p",
        },
    ),
    (
        event.Retry(**STEP_FIELDS, reason="why", usage=USAGE),
        {"type": "retry", **STEP_FIELDS_JSON, "reason": "why", "usage": USAGE_JSON},
    ),
    (
        event.ContinueToNextStep(**STEP_FIELDS, step=STEP),
        {"type": "continueToNextStep", **STEP_FIELDS_JSON, "step": STEP_JSON},
    ),
    (EVENT_ERROR, EVENT_ERROR_JSON),
    (
        event.StopRunByError(**STEP_FIELDS, checkpoint=CHECKPOINT, step=STEP, error=EVENT_ERROR),
        {"type": "stopRunByError", **ENDING_JSON, "error": EVENT_ERROR_JSON},
    ),
    (
        event.StopRunByExceededMaxSteps(**STEP_FIELDS, checkpoint=CHECKPOINT, step=STEP),
        {"type": "stopRunByExceededMaxSteps", **ENDING_JSON},
    ),
    (
        event.StopRunByInteractiveTool(**STEP_FIELDS, checkpoint=CHECKPOINT, step=STEP),
        {"type": "stopRunByInteractiveTool", **ENDING_JSON},
    ),
    (
        event.StopRunByDelegate(**STEP_FIELDS, checkpoint=CHECKPOINT, step=STEP),
        {"type": "stopRunByDelegate", **ENDING_JSON},
    ),
    (JOB_RUN, JOB_RUN_JSON),
    (job.JobNode(run=JOB_RUN), {"run": JOB_RUN_JSON, "children": []}),
    (
        job.Job(
            id="j",
            status="completed",
            coordinator_expert_key="k",
            total_steps=2,
            usage=USAGE,
            started_at=1,
            finished_at=2,
            runs=("r",),
        ),
        {
            "id": "j",
            "status": "completed",
            "coordinatorExpertKey": "k",
            "totalSteps": 2,
            "usage": USAGE_JSON,
            "startedAt": 1,
            "finishedAt": 2,
            "costUsd": None,
            "taskKey": None,
            "title": None,
            "runs": ["r"],
        },
    ),
    (manifest.Model(id="m", label="M"), {"id": "m", "label": "M"}),
    (manifest.Capture(), {"stdout": "file", "stderr": "pipe"}),
    (manifest.Capabilities(), CAPABILITIES_JSON),
    (
        manifest.Manifest(id="my_agent", label="Mine", pass_env=("KEY",), usage_told="step"),
        {"id": "my_agent", "label": "Mine", "passEnv": ["KEY"], "usageTold": "step"},
    ),
    (
        manifest.AdapterView(
            type="t",
            label="T",
            source="builtin",
            version="1",
            state="ready",
            disabled=False,
            models=(),
            parser="t",
            capabilities=manifest.Capabilities(),
        ),
        {
            "type": "t",
            "label": "T",
            "source": "builtin",
            "version": "1",
            "state": "ready",
            "disabled": False,
            "models": [],
            "parser": "t",
            "capabilities": CAPABILITIES_JSON,
            "packageName": None,
            "overriddenBuiltin": None,
            "overridePaused": None,
            "problem": None,
        },
    ),
    (run.Usage(input_tokens=1), RUN_USAGE_JSON),
    (AGENT, AGENT_JSON),
    (
        run.RuntimeSession(session_id="s", session_params={"a": 1}, task_key="heartbeat"),
        {"sessionId": "s", "sessionParams": {"a": 1}, "taskKey": "heartbeat"},
    ),
    (
        run.InvocationMeta(
            adapter_type="t",
            command="c",
            command_args=("-p",),
            cwd="/w",
            env={"A": "b"},
            prompt="p",
            notes=("n",),
            context={"taskId": "1"},
        ),
        {
            "adapterType": "t",
            "command": "c",
            "commandArgs": ["-p"],
            "cwd": "/w",
            "env": {"A": "b"},
            "prompt": "p",
            "notes": ["n"],
            "context": {"taskId": "1"},
        },
    ),
    (
        run.SpawnInfo(pid=1, process_group_id=None, started_at=TS),
        {"pid": 1, "processGroupId": None, "startedAt": TS},
    ),
    (
        run.ExecutionRequest(
            run_id="r",
            agent=AGENT,
            runtime=run.RuntimeSession(),
            config={"model": "m"},
            context={"taskId": "1"},
            auth_token="t",
            execution_target=ExecutionTarget(kind="ssh", host="h"),
        ),
        {
            "runId": "r",
            "agent": AGENT_JSON,
            "runtime": {},
            "config": {"model": "m"},
            "context": {"taskId": "1"},
            "authToken": "t",
            "executionTarget": {"kind": "ssh", "host": "h"},
        },
    ),
    (RESULT, RESULT_JSON),
    (
        run.RunOrder(id="r", adapter_type="t", agent=AGENT, cwd="/w", created_at=TS, prompt="p"),
        {
            "id": "r",
            "adapterType": "t",
            "agent": AGENT_JSON,
            "cwd": "/w",
            "createdAt": TS,
            "prompt": "p",
        },
    ),
    (
        run.StateChange(state="timed_out", at=TS, reason="r", actor="cli"),
        {"state": "timed_out", "at": TS, "reason": "r", "actor": "cli"},
    ),
    (
        run.RunView(id="r", status="queued", adapter_type="t", usage=run.Usage(input_tokens=1)),
        {
            "id": "r",
            "status": "queued",
            "adapterType": "t",
            "wakeReasons": [],
            "createdAt": "",
            "attempts": 0,
            "usage": RUN_USAGE_JSON,
            "scheduled": False,
            **dict.fromkeys(
                (
                    *("cwd", "prompt", "agentId", "agentName", "taskId", "startedAt", "endedAt"),
                    *("sessionId", "sessionReason", "provider", "model", "costUsd", "errorCode"),
                    *("errorMessage", "retryOf", "summary", "result", "coverage", "directory"),
                    *("companyId", "notBefore", "waitingFor", "budgetNote", "title"),
                )
            ),
        },
    ),
    (
        session.SessionManagement(compacts_itself=True, max_runs=1, max_tokens=2, max_age_sec=3),
        {"compactsItself": True, "maxRuns": 1, "maxTokens": 2, "maxAgeSec": 3},
    ),
    (
        session.StoredSession(
            agent_id="a",
            adapter_type="t",
            task_key="heartbeat",
            params={"sessionId": "s"},
            cwd="/w",
            last_run_id="r",
            runs=2,
        ),
        {
            "agentId": "a",
            "adapterType": "t",
            "taskKey": "heartbeat",
            "params": {"sessionId": "s"},
            "cwd": "/w",
            "lastRunId": "r",
            "runs": 2,
        },
    ),
    (
        session.ResumeDecision(action="fresh", reason="no earlier session"),
        {"action": "fresh", "reason": "no earlier session"},
    ),
    (
        ExecutionTarget(kind="ssh", host="h", port=22, user="u", remote_cwd="/r"),
        {"kind": "ssh", "host": "h", "port": 22, "user": "u", "remoteCwd": "/r"},
    ),
    (
        agent.Budget(usd=2.5),
        {"usd": 2.5, "tokens": None, "runs": None, "minutes": None, "period": "month"},
    ),
    (
        agent.Spent(runs=1),
        {"usd": 0.0, "tokens": 0, "runs": 1, "minutes": 0.0, "since": None},
    ),
    (
        agent.Agent(
            id="a",
            company_id="c",
            name="Ada",
            adapter_type="process",
            adapter_config={"env": {"KEY": {"secret": "key"}}},
        ),
        {
            "id": "a",
            "companyId": "c",
            "name": "Ada",
            "adapterType": "process",
            "adapterConfig": {"env": {"KEY": {"secret": "key"}}},
            "role": None,
            "status": "active",
            "pausedReason": None,
            "heartbeatMinutes": None,
            "nextBeatAt": None,
            "maxConcurrentRuns": 1,
            "retryLimit": 3,
            "budget": NO_BUDGET_JSON,
            "runBudget": NO_BUDGET_JSON,
            "sessionLimits": None,
            "environmentId": None,
            "workspace": "worktree",
            "instructions": None,
            "createdAt": "",
            "updatedAt": "",
        },
    ),
    (
        agent.Pause(
            id="p",
            agent_id="a",
            task_key="t",
            reason="failed three times",
            error_code="auth",
            error_message="no key",
            run_id="r",
            since=TS,
        ),
        {
            "id": "p",
            "agentId": "a",
            "taskKey": "t",
            "reason": "failed three times",
            "errorCode": "auth",
            "errorMessage": "no key",
            "runId": "r",
            "since": TS,
            "resetAt": None,
            "resetBy": None,
        },
    ),
    (
        company.Company(id="c", name="Acme", created_at=TS, updated_at=TS),
        {
            "id": "c",
            "name": "Acme",
            "forbidDangerous": False,
            "network": "open",
            "createdAt": TS,
            "updatedAt": TS,
        },
    ),
    (
        company.Environment(id="e", company_id="c", name="box", kind="ssh", config={"host": "h"}),
        {
            "id": "e",
            "companyId": "c",
            "name": "box",
            "kind": "ssh",
            "config": {"host": "h"},
            "createdAt": "",
            "updatedAt": "",
        },
    ),
    (
        company.SecretView(id="s", company_id="c", name="key", created_at=TS, updated_at=TS),
        {"id": "s", "companyId": "c", "name": "key", "createdAt": TS, "updatedAt": TS},
    ),
    (
        company.Activity(
            id="x",
            company_id="c",
            at=TS,
            actor="person",
            verb="created",
            subject_kind="task",
            subject_id="t",
        ),
        {
            "id": "x",
            "companyId": "c",
            "at": TS,
            "actor": "person",
            "verb": "created",
            "subjectKind": "task",
            "subjectId": "t",
            "detail": {},
        },
    ),
    (
        company.CostLine(
            day="2026-01-02",
            agent_id="a",
            adapter_type="process",
            model=None,
            runs=2,
            input_tokens=1,
            cached_input_tokens=2,
            cache_write_tokens=3,
            output_tokens=4,
            cost_usd=0.5,
            runs_of_unknown_cost=1,
        ),
        {
            "day": "2026-01-02",
            "agentId": "a",
            "adapterType": "process",
            "model": None,
            "runs": 2,
            "inputTokens": 1,
            "cachedInputTokens": 2,
            "cacheWriteTokens": 3,
            "outputTokens": 4,
            "costUsd": 0.5,
            "runsOfUnknownCost": 1,
        },
    ),
    (
        task.Task(id="t", company_id="c", identifier="T-1", title="fix", blocked_by=("b",)),
        {
            "id": "t",
            "companyId": "c",
            "identifier": "T-1",
            "title": "fix",
            "body": "",
            "status": "todo",
            "priority": "medium",
            "assigneeAgentId": None,
            "parentId": None,
            "blockedBy": ["b"],
            "cwd": None,
            "workspace": None,
            "environmentId": None,
            "branchTemplate": None,
            "baseRef": None,
            "withDirtyFiles": False,
            "checkoutRunId": None,
            "createdBy": "person",
            "createdAt": "",
            "updatedAt": "",
            "completedAt": None,
        },
    ),
    (
        task.Comment(id="m", task_id="t", author="person", body="hi", created_at=TS),
        {
            "id": "m",
            "taskId": "t",
            "author": "person",
            "body": "hi",
            "runId": None,
            "createdAt": TS,
        },
    ),
    (
        task.Interaction(
            id="i", task_id="t", run_id="r", agent_id="a", kind="request_confirmation"
        ),
        {
            "id": "i",
            "taskId": "t",
            "runId": "r",
            "agentId": "a",
            "kind": "request_confirmation",
            "status": "open",
            "payload": {},
            "response": None,
            "createdAt": "",
            "resolvedAt": None,
            "resolvedBy": None,
        },
    ),
    (
        task.Approval(id="v", company_id="c", kind="hire", task_ids=("t",)),
        {
            "id": "v",
            "companyId": "c",
            "kind": "hire",
            "status": "pending",
            "payload": {},
            "requestedBy": None,
            "runId": None,
            "taskIds": ["t"],
            "decisionNote": None,
            "createdAt": "",
            "decidedAt": None,
            "decidedBy": None,
        },
    ),
    (
        wake.Wake(
            id="w", run_id="r", agent_id="a", task_id=None, reason="timer", actor="system", at=TS
        ),
        {
            "id": "w",
            "runId": "r",
            "agentId": "a",
            "taskId": None,
            "reason": "timer",
            "actor": "system",
            "at": TS,
            "prompt": None,
            "commentId": None,
            "approvalId": None,
            "coalesced": False,
        },
    ),
    (
        wake.WakeReceipt(run_id="r", status="queued", coalesced=False),
        {"runId": "r", "status": "queued", "coalesced": False},
    ),
    (
        operation.WorkspaceOperation(
            id="o", run_id="r", task_id="t", kind="workspace_finalize", started_at=TS
        ),
        {
            "id": "o",
            "runId": "r",
            "taskId": "t",
            "kind": "workspace_finalize",
            "status": "running",
            "startedAt": TS,
            "endedAt": None,
            "error": None,
            "detail": {},
            "waivedBy": None,
            "waiveReason": None,
        },
    ),
]
# Shared fields of a family; their members stand in the table.
ABSTRACT = {entry.EntryFields, event.EventFields, event.StepFields, Tagged}


def structures() -> Iterator[type[Wire]]:
    for module in pkgutil.iter_modules(binderclip.contract.__path__):
        found = vars(importlib.import_module(f"binderclip.contract.{module.name}")).values()
        for kind in found:
            if isinstance(kind, type) and issubclass(kind, Wire) and kind is not Wire:
                yield kind


def example_name(example: tuple[Wire, dict[str, Any]]) -> str:
    return type(example[0]).__name__


def test_every_structure_of_the_contract_has_an_example() -> None:
    """A4, A5, T1, N2, N3: nothing crosses a wire without its JSON being written down here."""
    missing = set(structures()) - ABSTRACT - {type(value) for value, _ in EXAMPLES}
    assert not missing, f"write an example of {sorted(kind.__name__ for kind in missing)} here"


@pytest.mark.parametrize("example", EXAMPLES, ids=map(example_name, EXAMPLES))
def test_a_structure_has_exactly_this_json_both_ways(example: tuple[Wire, dict[str, Any]]) -> None:
    """Everything that crosses a wire is camelCase as the contract writes it."""
    value, plain = example
    assert json.loads(to_json(value)) == plain == to_plain(value)
    assert from_json(json.dumps(plain), type(value)) == value == from_plain(plain, type(value))


@pytest.mark.parametrize("example", EXAMPLES, ids=map(example_name, EXAMPLES))
def test_unknown_fields_are_ignored(example: tuple[Wire, dict[str, Any]]) -> None:
    """Older readers load what newer writers wrote; only a manifest's misspelling is refused."""
    value, plain = example
    newer = {**plain, "fieldOfALaterVersion": {"x": [1]}}
    if isinstance(value, manifest.Manifest):
        with pytest.raises(msgspec.ValidationError, match="fieldOfALaterVersion"):
            from_plain(newer, type(value))
    else:
        assert from_plain(newer, type(value)) == value


@pytest.mark.parametrize("example", EXAMPLES, ids=map(example_name, EXAMPLES))
def test_values_cannot_be_changed(example: tuple[Wire, dict[str, Any]]) -> None:
    value = example[0]
    name = msgspec.structs.fields(value)[0].name
    with pytest.raises(AttributeError, match="immutable"):
        setattr(value, name, "other")


def test_a_checkpoint_from_before_metadata_still_loads() -> None:
    """N2: old checkpoints without metadata load."""
    old = {key: value for key, value in CHECKPOINT_JSON.items() if key != "metadata"}
    assert from_plain(old, checkpoint.Checkpoint).metadata is None


def test_times_have_milliseconds_and_a_z() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00.000Z"
    assert iso_time(1767323045.678) == "2026-01-02T03:04:05.678Z"
