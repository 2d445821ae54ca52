from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from kagzi.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OverlapPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLAP_POLICY_UNSPECIFIED: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_ALLOW: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_SKIP: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_BUFFER_ONE: _ClassVar[OverlapPolicy]
OVERLAP_POLICY_UNSPECIFIED: OverlapPolicy
OVERLAP_POLICY_ALLOW: OverlapPolicy
OVERLAP_POLICY_SKIP: OverlapPolicy
OVERLAP_POLICY_BUFFER_ONE: OverlapPolicy

class WorkflowSchedule(_message.Message):
    __slots__ = ("namespace", "schedule_id", "task_queue", "workflow_type", "cron_expr", "version", "enabled", "input", "max_catchup", "total_runs", "successful_runs", "failed_runs", "created_at", "updated_at", "next_fire_at", "last_fired_at", "time_zone", "overlap_policy", "name", "skipped_ticks", "retry_policy", "timeouts", "on_failure_workflow", "on_failure_task_queue", "tags", "broken", "buffered_tick", "pause_reason", "jitter_ms", "next_run_at", "concurrency_key", "concurrency_limit", "concurrency_scope", "run_retry_policy")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RUNS_FIELD_NUMBER: _ClassVar[int]
    SUCCESSFUL_RUNS_FIELD_NUMBER: _ClassVar[int]
    FAILED_RUNS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIRE_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIRED_AT_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_POLICY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_TICKS_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    BUFFERED_TICK_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    JITTER_MS_FIELD_NUMBER: _ClassVar[int]
    NEXT_RUN_AT_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    RUN_RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    version: str
    enabled: bool
    input: _common_pb2.Payload
    max_catchup: int
    total_runs: int
    successful_runs: int
    failed_runs: int
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    next_fire_at: _timestamp_pb2.Timestamp
    last_fired_at: _timestamp_pb2.Timestamp
    time_zone: str
    overlap_policy: OverlapPolicy
    name: str
    skipped_ticks: int
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    on_failure_workflow: str
    on_failure_task_queue: str
    tags: _containers.ScalarMap[str, str]
    broken: str
    buffered_tick: _timestamp_pb2.Timestamp
    pause_reason: str
    jitter_ms: int
    next_run_at: _timestamp_pb2.Timestamp
    concurrency_key: str
    concurrency_limit: int
    concurrency_scope: _workflow_pb2.ConcurrencyScope
    run_retry_policy: _common_pb2.RetryPolicy
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., version: _Optional[str] = ..., enabled: bool = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., max_catchup: _Optional[int] = ..., total_runs: _Optional[int] = ..., successful_runs: _Optional[int] = ..., failed_runs: _Optional[int] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., next_fire_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_fired_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., time_zone: _Optional[str] = ..., overlap_policy: _Optional[_Union[OverlapPolicy, str]] = ..., name: _Optional[str] = ..., skipped_ticks: _Optional[int] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., on_failure_workflow: _Optional[str] = ..., on_failure_task_queue: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., broken: _Optional[str] = ..., buffered_tick: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., pause_reason: _Optional[str] = ..., jitter_ms: _Optional[int] = ..., next_run_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., concurrency_key: _Optional[str] = ..., concurrency_limit: _Optional[int] = ..., concurrency_scope: _Optional[_Union[_workflow_pb2.ConcurrencyScope, str]] = ..., run_retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class CreateWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "task_queue", "workflow_type", "cron_expr", "input", "enabled", "max_catchup", "version", "time_zone", "overlap_policy", "name", "retry_policy", "timeouts", "on_failure_workflow", "on_failure_task_queue", "tags", "request_id", "jitter_ms", "or_update", "concurrency_key", "concurrency_limit", "concurrency_scope", "run_retry_policy")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_POLICY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    JITTER_MS_FIELD_NUMBER: _ClassVar[int]
    OR_UPDATE_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    RUN_RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    input: _common_pb2.Payload
    enabled: bool
    max_catchup: int
    version: str
    time_zone: str
    overlap_policy: OverlapPolicy
    name: str
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    on_failure_workflow: str
    on_failure_task_queue: str
    tags: _containers.ScalarMap[str, str]
    request_id: str
    jitter_ms: int
    or_update: bool
    concurrency_key: str
    concurrency_limit: int
    concurrency_scope: _workflow_pb2.ConcurrencyScope
    run_retry_policy: _common_pb2.RetryPolicy
    def __init__(self, namespace: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., enabled: bool = ..., max_catchup: _Optional[int] = ..., version: _Optional[str] = ..., time_zone: _Optional[str] = ..., overlap_policy: _Optional[_Union[OverlapPolicy, str]] = ..., name: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., on_failure_workflow: _Optional[str] = ..., on_failure_task_queue: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., request_id: _Optional[str] = ..., jitter_ms: _Optional[int] = ..., or_update: bool = ..., concurrency_key: _Optional[str] = ..., concurrency_limit: _Optional[int] = ..., concurrency_scope: _Optional[_Union[_workflow_pb2.ConcurrencyScope, str]] = ..., run_retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class CreateWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule", "existed")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    existed: bool
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ..., existed: bool = ...) -> None: ...

class GetWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class GetWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class ListWorkflowSchedulesRequest(_message.Message):
    __slots__ = ("namespace", "task_queue", "page", "query")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    task_queue: str
    page: _common_pb2.PageRequest
    query: str
    def __init__(self, namespace: _Optional[str] = ..., task_queue: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., query: _Optional[str] = ...) -> None: ...

class ListWorkflowSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "page")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[WorkflowSchedule]
    page: _common_pb2.PageInfo
    def __init__(self, schedules: _Optional[_Iterable[_Union[WorkflowSchedule, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class UpdateWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "task_queue", "workflow_type", "cron_expr", "input", "enabled", "max_catchup", "next_fire_at", "version", "time_zone", "overlap_policy", "name", "retry_policy", "timeouts", "on_failure_workflow", "on_failure_task_queue", "tags", "reason", "jitter_ms", "concurrency_key", "concurrency_limit", "concurrency_scope", "run_retry_policy")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    MAX_CATCHUP_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIRE_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_POLICY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    JITTER_MS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    RUN_RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    task_queue: str
    workflow_type: str
    cron_expr: str
    input: _common_pb2.Payload
    enabled: bool
    max_catchup: int
    next_fire_at: _timestamp_pb2.Timestamp
    version: str
    time_zone: str
    overlap_policy: OverlapPolicy
    name: str
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    on_failure_workflow: str
    on_failure_task_queue: str
    tags: ScheduleTags
    reason: str
    jitter_ms: int
    concurrency_key: str
    concurrency_limit: int
    concurrency_scope: _workflow_pb2.ConcurrencyScope
    run_retry_policy: _common_pb2.RetryPolicy
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., cron_expr: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., enabled: bool = ..., max_catchup: _Optional[int] = ..., next_fire_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[str] = ..., time_zone: _Optional[str] = ..., overlap_policy: _Optional[_Union[OverlapPolicy, str]] = ..., name: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., on_failure_workflow: _Optional[str] = ..., on_failure_task_queue: _Optional[str] = ..., tags: _Optional[_Union[ScheduleTags, _Mapping]] = ..., reason: _Optional[str] = ..., jitter_ms: _Optional[int] = ..., concurrency_key: _Optional[str] = ..., concurrency_limit: _Optional[int] = ..., concurrency_scope: _Optional[_Union[_workflow_pb2.ConcurrencyScope, str]] = ..., run_retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class ScheduleTags(_message.Message):
    __slots__ = ("tags",)
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TAGS_FIELD_NUMBER: _ClassVar[int]
    tags: _containers.ScalarMap[str, str]
    def __init__(self, tags: _Optional[_Mapping[str, str]] = ...) -> None: ...

class UpdateWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class DeleteWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class DeleteWorkflowScheduleResponse(_message.Message):
    __slots__ = ("deleted", "message")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    message: str
    def __init__(self, deleted: bool = ..., message: _Optional[str] = ...) -> None: ...

class TriggerWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "request_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    request_id: str
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class TriggerWorkflowScheduleResponse(_message.Message):
    __slots__ = ("run_id",)
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    def __init__(self, run_id: _Optional[str] = ...) -> None: ...

class PauseWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PauseWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class ResumeWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "reason", "catchup")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CATCHUP_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    reason: str
    catchup: int
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., reason: _Optional[str] = ..., catchup: _Optional[int] = ...) -> None: ...

class ResumeWorkflowScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: WorkflowSchedule
    def __init__(self, schedule: _Optional[_Union[WorkflowSchedule, _Mapping]] = ...) -> None: ...

class BackfillWorkflowScheduleRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "to", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    to: _timestamp_pb2.Timestamp
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., to: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., **kwargs) -> None: ...

class BackfillWorkflowScheduleResponse(_message.Message):
    __slots__ = ("ticks",)
    TICKS_FIELD_NUMBER: _ClassVar[int]
    ticks: _containers.RepeatedCompositeFieldContainer[BackfilledTick]
    def __init__(self, ticks: _Optional[_Iterable[_Union[BackfilledTick, _Mapping]]] = ...) -> None: ...

class BackfilledTick(_message.Message):
    __slots__ = ("tick", "run_id", "existed")
    TICK_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    tick: _timestamp_pb2.Timestamp
    run_id: str
    existed: bool
    def __init__(self, tick: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., run_id: _Optional[str] = ..., existed: bool = ...) -> None: ...

class ListScheduleRunsRequest(_message.Message):
    __slots__ = ("namespace", "schedule_id", "page")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    schedule_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListScheduleRunsResponse(_message.Message):
    __slots__ = ("runs", "page")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Workflow]
    page: _common_pb2.PageInfo
    def __init__(self, runs: _Optional[_Iterable[_Union[_workflow_pb2.Workflow, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class PreviewScheduleRequest(_message.Message):
    __slots__ = ("cron_expr", "time_zone", "count", "after")
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    cron_expr: str
    time_zone: str
    count: int
    after: _timestamp_pb2.Timestamp
    def __init__(self, cron_expr: _Optional[str] = ..., time_zone: _Optional[str] = ..., count: _Optional[int] = ..., after: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PreviewScheduleResponse(_message.Message):
    __slots__ = ("ticks",)
    TICKS_FIELD_NUMBER: _ClassVar[int]
    ticks: _containers.RepeatedCompositeFieldContainer[_timestamp_pb2.Timestamp]
    def __init__(self, ticks: _Optional[_Iterable[_Union[_timestamp_pb2.Timestamp, _Mapping]]] = ...) -> None: ...
