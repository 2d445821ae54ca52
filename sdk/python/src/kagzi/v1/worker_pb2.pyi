from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from kagzi.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATUS_UNSPECIFIED: _ClassVar[WorkerStatus]
    WORKER_STATUS_ONLINE: _ClassVar[WorkerStatus]
    WORKER_STATUS_DRAINING: _ClassVar[WorkerStatus]
    WORKER_STATUS_OFFLINE: _ClassVar[WorkerStatus]

class WorkerOfflineReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_OFFLINE_REASON_UNSPECIFIED: _ClassVar[WorkerOfflineReason]
    WORKER_OFFLINE_REASON_DEREGISTERED: _ClassVar[WorkerOfflineReason]
    WORKER_OFFLINE_REASON_LOST: _ClassVar[WorkerOfflineReason]
    WORKER_OFFLINE_REASON_FORCED: _ClassVar[WorkerOfflineReason]
WORKER_STATUS_UNSPECIFIED: WorkerStatus
WORKER_STATUS_ONLINE: WorkerStatus
WORKER_STATUS_DRAINING: WorkerStatus
WORKER_STATUS_OFFLINE: WorkerStatus
WORKER_OFFLINE_REASON_UNSPECIFIED: WorkerOfflineReason
WORKER_OFFLINE_REASON_DEREGISTERED: WorkerOfflineReason
WORKER_OFFLINE_REASON_LOST: WorkerOfflineReason
WORKER_OFFLINE_REASON_FORCED: WorkerOfflineReason

class Worker(_message.Message):
    __slots__ = ("worker_id", "task_queue", "status", "version", "workflow_types", "hostname", "pid", "queue_concurrency_limit", "workflow_type_concurrency", "active_workflow_count", "registered_at", "last_heartbeat_at", "labels", "capabilities", "namespace", "platform", "max_concurrent", "total_completed", "total_failed", "stats", "deregistered_at", "task_queues", "offline_reason", "pauses_runs", "build_id")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CapabilitiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_WORKFLOW_COUNT_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_AT_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FAILED_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    DEREGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUES_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSES_RUNS_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    task_queue: str
    status: WorkerStatus
    version: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    hostname: str
    pid: int
    queue_concurrency_limit: int
    workflow_type_concurrency: _containers.RepeatedCompositeFieldContainer[WorkflowTypeConcurrency]
    active_workflow_count: int
    registered_at: _timestamp_pb2.Timestamp
    last_heartbeat_at: _timestamp_pb2.Timestamp
    labels: _containers.ScalarMap[str, str]
    capabilities: _containers.ScalarMap[str, str]
    namespace: str
    platform: str
    max_concurrent: int
    total_completed: int
    total_failed: int
    stats: WorkerStats
    deregistered_at: _timestamp_pb2.Timestamp
    task_queues: _containers.RepeatedScalarFieldContainer[str]
    offline_reason: WorkerOfflineReason
    pauses_runs: bool
    build_id: str
    def __init__(self, worker_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., status: _Optional[_Union[WorkerStatus, str]] = ..., version: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., hostname: _Optional[str] = ..., pid: _Optional[int] = ..., queue_concurrency_limit: _Optional[int] = ..., workflow_type_concurrency: _Optional[_Iterable[_Union[WorkflowTypeConcurrency, _Mapping]]] = ..., active_workflow_count: _Optional[int] = ..., registered_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_heartbeat_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., labels: _Optional[_Mapping[str, str]] = ..., capabilities: _Optional[_Mapping[str, str]] = ..., namespace: _Optional[str] = ..., platform: _Optional[str] = ..., max_concurrent: _Optional[int] = ..., total_completed: _Optional[int] = ..., total_failed: _Optional[int] = ..., stats: _Optional[_Union[WorkerStats, _Mapping]] = ..., deregistered_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., task_queues: _Optional[_Iterable[str]] = ..., offline_reason: _Optional[_Union[WorkerOfflineReason, str]] = ..., pauses_runs: bool = ..., build_id: _Optional[str] = ...) -> None: ...

class WorkflowTypeConcurrency(_message.Message):
    __slots__ = ("workflow_type", "max_concurrent")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    max_concurrent: int
    def __init__(self, workflow_type: _Optional[str] = ..., max_concurrent: _Optional[int] = ...) -> None: ...

class WorkerStats(_message.Message):
    __slots__ = ("cpu_percent", "memory_bytes", "disk_available_bytes", "uptime_seconds", "average_run_ms")
    CPU_PERCENT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_AVAILABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    UPTIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_RUN_MS_FIELD_NUMBER: _ClassVar[int]
    cpu_percent: float
    memory_bytes: int
    disk_available_bytes: int
    uptime_seconds: int
    average_run_ms: float
    def __init__(self, cpu_percent: _Optional[float] = ..., memory_bytes: _Optional[int] = ..., disk_available_bytes: _Optional[int] = ..., uptime_seconds: _Optional[int] = ..., average_run_ms: _Optional[float] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("namespace", "task_queue", "workflow_types", "hostname", "pid", "version", "labels", "queue_concurrency_limit", "workflow_type_concurrency", "max_concurrent", "capabilities", "platform", "task_queues", "worker_id", "instance_id", "pauses_runs", "build_id", "keeps_runs", "takes_batches")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class CapabilitiesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUES_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSES_RUNS_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    KEEPS_RUNS_FIELD_NUMBER: _ClassVar[int]
    TAKES_BATCHES_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    task_queue: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    hostname: str
    pid: int
    version: str
    labels: _containers.ScalarMap[str, str]
    queue_concurrency_limit: int
    workflow_type_concurrency: _containers.RepeatedCompositeFieldContainer[WorkflowTypeConcurrency]
    max_concurrent: int
    capabilities: _containers.ScalarMap[str, str]
    platform: str
    task_queues: _containers.RepeatedScalarFieldContainer[str]
    worker_id: str
    instance_id: str
    pauses_runs: bool
    build_id: str
    keeps_runs: int
    takes_batches: bool
    def __init__(self, namespace: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., hostname: _Optional[str] = ..., pid: _Optional[int] = ..., version: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., queue_concurrency_limit: _Optional[int] = ..., workflow_type_concurrency: _Optional[_Iterable[_Union[WorkflowTypeConcurrency, _Mapping]]] = ..., max_concurrent: _Optional[int] = ..., capabilities: _Optional[_Mapping[str, str]] = ..., platform: _Optional[str] = ..., task_queues: _Optional[_Iterable[str]] = ..., worker_id: _Optional[str] = ..., instance_id: _Optional[str] = ..., pauses_runs: bool = ..., build_id: _Optional[str] = ..., keeps_runs: _Optional[int] = ..., takes_batches: bool = ...) -> None: ...

class RegisterResponse(_message.Message):
    __slots__ = ("worker_id", "heartbeat_interval_secs", "heartbeat_interval_ms", "lease_ms", "keeps_order", "resumes_runs", "takes_batches")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_SECS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_ORDER_FIELD_NUMBER: _ClassVar[int]
    RESUMES_RUNS_FIELD_NUMBER: _ClassVar[int]
    TAKES_BATCHES_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    heartbeat_interval_secs: int
    heartbeat_interval_ms: int
    lease_ms: int
    keeps_order: bool
    resumes_runs: bool
    takes_batches: bool
    def __init__(self, worker_id: _Optional[str] = ..., heartbeat_interval_secs: _Optional[int] = ..., heartbeat_interval_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., keeps_order: bool = ..., resumes_runs: bool = ..., takes_batches: bool = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("worker_id", "active_count", "completed_delta", "failed_delta", "stats", "held", "held_is_whole", "tasks_received", "blocked")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_DELTA_FIELD_NUMBER: _ClassVar[int]
    FAILED_DELTA_FIELD_NUMBER: _ClassVar[int]
    STATS_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HELD_IS_WHOLE_FIELD_NUMBER: _ClassVar[int]
    TASKS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    active_count: int
    completed_delta: int
    failed_delta: int
    stats: WorkerStats
    held: _containers.RepeatedCompositeFieldContainer[Lease]
    held_is_whole: bool
    tasks_received: int
    blocked: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.BlockedCode]
    def __init__(self, worker_id: _Optional[str] = ..., active_count: _Optional[int] = ..., completed_delta: _Optional[int] = ..., failed_delta: _Optional[int] = ..., stats: _Optional[_Union[WorkerStats, _Mapping]] = ..., held: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ..., held_is_whole: bool = ..., tasks_received: _Optional[int] = ..., blocked: _Optional[_Iterable[_Union[_workflow_pb2.BlockedCode, _Mapping]]] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ("run_id", "lease_token", "run_status")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RUN_STATUS_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_token: str
    run_status: _workflow_pb2.WorkflowStatus
    def __init__(self, run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., run_status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("accepted", "should_drain", "lost", "cancelling", "pausing")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    SHOULD_DRAIN_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    CANCELLING_FIELD_NUMBER: _ClassVar[int]
    PAUSING_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    should_drain: bool
    lost: _containers.RepeatedCompositeFieldContainer[Lease]
    cancelling: _containers.RepeatedCompositeFieldContainer[CancelTask]
    pausing: _containers.RepeatedCompositeFieldContainer[Lease]
    def __init__(self, accepted: bool = ..., should_drain: bool = ..., lost: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ..., cancelling: _Optional[_Iterable[_Union[CancelTask, _Mapping]]] = ..., pausing: _Optional[_Iterable[_Union[Lease, _Mapping]]] = ...) -> None: ...

class DeregisterRequest(_message.Message):
    __slots__ = ("worker_id", "drain")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    drain: bool
    def __init__(self, worker_id: _Optional[str] = ..., drain: bool = ...) -> None: ...

class DeregisterResponse(_message.Message):
    __slots__ = ("drained",)
    DRAINED_FIELD_NUMBER: _ClassVar[int]
    drained: bool
    def __init__(self, drained: bool = ...) -> None: ...

class PollTaskRequest(_message.Message):
    __slots__ = ("namespace", "worker_id", "task_queue", "workflow_types", "wait", "max_tasks")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    worker_id: str
    task_queue: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    wait: _duration_pb2.Duration
    max_tasks: int
    def __init__(self, namespace: _Optional[str] = ..., worker_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., max_tasks: _Optional[int] = ...) -> None: ...

class PollTaskResponse(_message.Message):
    __slots__ = ("run_id", "workflow_type", "input", "task", "more")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    workflow_type: str
    input: _common_pb2.Payload
    task: Task
    more: _containers.RepeatedCompositeFieldContainer[Task]
    def __init__(self, run_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., more: _Optional[_Iterable[_Union[Task, _Mapping]]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("namespace", "run_id", "workflow_type", "task_queue", "version", "input", "lease_token", "attempt", "lease_expires_at", "deadline_at", "retry_policy", "timeouts", "history", "next_history_token", "external_id", "parent_run_id", "schedule_id", "tags", "traceparent", "cancel_requested", "scheduled_at", "cancel_grace_until", "cancel_reason", "failed_run_id", "owed_from", "base")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    LEASE_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    NEXT_HISTORY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    CANCEL_GRACE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REASON_FIELD_NUMBER: _ClassVar[int]
    FAILED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OWED_FROM_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    workflow_type: str
    task_queue: str
    version: str
    input: _common_pb2.Payload
    lease_token: str
    attempt: int
    lease_expires_at: _timestamp_pb2.Timestamp
    deadline_at: _timestamp_pb2.Timestamp
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    history: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Step]
    next_history_token: str
    external_id: str
    parent_run_id: str
    schedule_id: str
    tags: _containers.ScalarMap[str, str]
    traceparent: str
    cancel_requested: bool
    scheduled_at: _timestamp_pb2.Timestamp
    cancel_grace_until: _timestamp_pb2.Timestamp
    cancel_reason: _common_pb2.ErrorDetail
    failed_run_id: str
    owed_from: int
    base: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., task_queue: _Optional[str] = ..., version: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., lease_token: _Optional[str] = ..., attempt: _Optional[int] = ..., lease_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., deadline_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., history: _Optional[_Iterable[_Union[_workflow_pb2.Step, _Mapping]]] = ..., next_history_token: _Optional[str] = ..., external_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., tags: _Optional[_Mapping[str, str]] = ..., traceparent: _Optional[str] = ..., cancel_requested: bool = ..., scheduled_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., cancel_grace_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., cancel_reason: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., failed_run_id: _Optional[str] = ..., owed_from: _Optional[int] = ..., base: _Optional[str] = ...) -> None: ...

class GetHistoryRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    token: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., token: _Optional[str] = ...) -> None: ...

class GetHistoryResponse(_message.Message):
    __slots__ = ("history", "next_history_token")
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    NEXT_HISTORY_TOKEN_FIELD_NUMBER: _ClassVar[int]
    history: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Step]
    next_history_token: str
    def __init__(self, history: _Optional[_Iterable[_Union[_workflow_pb2.Step, _Mapping]]] = ..., next_history_token: _Optional[str] = ...) -> None: ...

class BeginStepRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_name", "kind", "input", "retry_policy", "lease_token", "start_to_close_timeout_ms", "started_at", "branch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    START_TO_CLOSE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_name: str
    kind: _workflow_pb2.StepKind
    input: _common_pb2.Payload
    retry_policy: _common_pb2.RetryPolicy
    lease_token: str
    start_to_close_timeout_ms: int
    started_at: _timestamp_pb2.Timestamp
    branch: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., kind: _Optional[_Union[_workflow_pb2.StepKind, str]] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., lease_token: _Optional[str] = ..., start_to_close_timeout_ms: _Optional[int] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., branch: _Optional[str] = ...) -> None: ...

class BeginStepResponse(_message.Message):
    __slots__ = ("step_id", "should_execute", "cached_output", "attempt_number", "error")
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SHOULD_EXECUTE_FIELD_NUMBER: _ClassVar[int]
    CACHED_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    step_id: str
    should_execute: bool
    cached_output: _common_pb2.Payload
    attempt_number: int
    error: _common_pb2.ErrorDetail
    def __init__(self, step_id: _Optional[str] = ..., should_execute: bool = ..., cached_output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., attempt_number: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ...) -> None: ...

class CompleteStepRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_id", "output", "lease_token", "started_at", "step_name", "branch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_id: str
    output: _common_pb2.Payload
    lease_token: str
    started_at: _timestamp_pb2.Timestamp
    step_name: str
    branch: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., lease_token: _Optional[str] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., step_name: _Optional[str] = ..., branch: _Optional[str] = ...) -> None: ...

class CompleteStepResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: _workflow_pb2.Step
    def __init__(self, step: _Optional[_Union[_workflow_pb2.Step, _Mapping]] = ...) -> None: ...

class FailStepRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_id", "error", "lease_token", "retry_policy", "started_at", "hold", "step_name", "branch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_id: str
    error: _common_pb2.ErrorDetail
    lease_token: str
    retry_policy: _common_pb2.RetryPolicy
    started_at: _timestamp_pb2.Timestamp
    hold: bool
    step_name: str
    branch: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., lease_token: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., hold: bool = ..., step_name: _Optional[str] = ..., branch: _Optional[str] = ...) -> None: ...

class FailStepResponse(_message.Message):
    __slots__ = ("scheduled_retry", "retry_at", "retry_in", "settled")
    SCHEDULED_RETRY_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_IN_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    scheduled_retry: bool
    retry_at: _timestamp_pb2.Timestamp
    retry_in: _duration_pb2.Duration
    settled: int
    def __init__(self, scheduled_retry: bool = ..., retry_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., retry_in: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., settled: _Optional[int] = ...) -> None: ...

class SleepRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_id", "duration", "lease_token", "until", "hold", "step_name", "branch", "over")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_id: str
    duration: _duration_pb2.Duration
    lease_token: str
    until: _timestamp_pb2.Timestamp
    hold: bool
    step_name: str
    branch: str
    over: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., duration: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lease_token: _Optional[str] = ..., until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., hold: bool = ..., step_name: _Optional[str] = ..., branch: _Optional[str] = ..., over: bool = ...) -> None: ...

class SleepResponse(_message.Message):
    __slots__ = ("settled",)
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    settled: int
    def __init__(self, settled: _Optional[int] = ...) -> None: ...

class AwaitSignalRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_name", "signal_name", "timeout", "lease_token", "hold", "branch")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_name: str
    signal_name: str
    timeout: _duration_pb2.Duration
    lease_token: str
    hold: bool
    branch: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., signal_name: _Optional[str] = ..., timeout: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., lease_token: _Optional[str] = ..., hold: bool = ..., branch: _Optional[str] = ...) -> None: ...

class AwaitSignalResponse(_message.Message):
    __slots__ = ("payload", "timed_out", "settled")
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    payload: _common_pb2.Payload
    timed_out: bool
    settled: int
    def __init__(self, payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., timed_out: bool = ..., settled: _Optional[int] = ...) -> None: ...

class StartChildRequest(_message.Message):
    __slots__ = ("step_name", "lease_token", "child", "parent_close_policy", "branch")
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHILD_FIELD_NUMBER: _ClassVar[int]
    PARENT_CLOSE_POLICY_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    step_name: str
    lease_token: str
    child: _workflow_pb2.StartWorkflowRequest
    parent_close_policy: _common_pb2.ParentClosePolicy
    branch: str
    def __init__(self, step_name: _Optional[str] = ..., lease_token: _Optional[str] = ..., child: _Optional[_Union[_workflow_pb2.StartWorkflowRequest, _Mapping]] = ..., parent_close_policy: _Optional[_Union[_common_pb2.ParentClosePolicy, str]] = ..., branch: _Optional[str] = ...) -> None: ...

class StartChildResponse(_message.Message):
    __slots__ = ("child_run_id", "step_id", "step")
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    child_run_id: str
    step_id: str
    step: _workflow_pb2.Step
    def __init__(self, child_run_id: _Optional[str] = ..., step_id: _Optional[str] = ..., step: _Optional[_Union[_workflow_pb2.Step, _Mapping]] = ...) -> None: ...

class AwaitChildrenRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "child_run_ids", "any", "lease_token", "hold")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_IDS_FIELD_NUMBER: _ClassVar[int]
    ANY_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HOLD_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    child_run_ids: _containers.RepeatedScalarFieldContainer[str]
    any: bool
    lease_token: str
    hold: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., child_run_ids: _Optional[_Iterable[str]] = ..., any: bool = ..., lease_token: _Optional[str] = ..., hold: bool = ...) -> None: ...

class AwaitChildrenResponse(_message.Message):
    __slots__ = ("finished", "steps")
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    finished: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Workflow]
    steps: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Step]
    def __init__(self, finished: _Optional[_Iterable[_Union[_workflow_pb2.Workflow, _Mapping]]] = ..., steps: _Optional[_Iterable[_Union[_workflow_pb2.Step, _Mapping]]] = ...) -> None: ...

class CompleteWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "output", "lease_token", "continue_as", "unreached", "unreceived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CONTINUE_AS_FIELD_NUMBER: _ClassVar[int]
    UNREACHED_FIELD_NUMBER: _ClassVar[int]
    UNRECEIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    output: _common_pb2.Payload
    lease_token: str
    continue_as: _workflow_pb2.StartWorkflowRequest
    unreached: _containers.RepeatedScalarFieldContainer[str]
    unreceived: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., lease_token: _Optional[str] = ..., continue_as: _Optional[_Union[_workflow_pb2.StartWorkflowRequest, _Mapping]] = ..., unreached: _Optional[_Iterable[str]] = ..., unreceived: _Optional[_Iterable[str]] = ...) -> None: ...

class CompleteWorkflowResponse(_message.Message):
    __slots__ = ("status", "continued_as_run_id")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    continued_as_run_id: str
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ..., continued_as_run_id: _Optional[str] = ...) -> None: ...

class FailWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "error", "lease_token", "unreached", "unreceived")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    UNREACHED_FIELD_NUMBER: _ClassVar[int]
    UNRECEIVED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    error: _common_pb2.ErrorDetail
    lease_token: str
    unreached: _containers.RepeatedScalarFieldContainer[str]
    unreceived: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., lease_token: _Optional[str] = ..., unreached: _Optional[_Iterable[str]] = ..., unreceived: _Optional[_Iterable[str]] = ...) -> None: ...

class FailWorkflowResponse(_message.Message):
    __slots__ = ("status", "retry_at")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    status: _workflow_pb2.WorkflowStatus
    retry_at: _timestamp_pb2.Timestamp
    def __init__(self, status: _Optional[_Union[_workflow_pb2.WorkflowStatus, str]] = ..., retry_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ReleaseTaskRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "lease_token", "park", "divergence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    PARK_FIELD_NUMBER: _ClassVar[int]
    DIVERGENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    lease_token: str
    park: bool
    divergence: _workflow_pb2.Divergence
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., park: bool = ..., divergence: _Optional[_Union[_workflow_pb2.Divergence, _Mapping]] = ...) -> None: ...

class ReleaseTaskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SessionRequest(_message.Message):
    __slots__ = ("seq", "hello", "credit", "heartbeat", "begin_step", "complete_step", "fail_step", "sleep", "await_signal", "start_child", "await_children", "complete_workflow", "fail_workflow", "release_task", "goodbye", "set_note", "after", "batch")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    CREDIT_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_STEP_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_STEP_FIELD_NUMBER: _ClassVar[int]
    FAIL_STEP_FIELD_NUMBER: _ClassVar[int]
    SLEEP_FIELD_NUMBER: _ClassVar[int]
    AWAIT_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    START_CHILD_FIELD_NUMBER: _ClassVar[int]
    AWAIT_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    FAIL_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    RELEASE_TASK_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    SET_NOTE_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    seq: int
    hello: RegisterRequest
    credit: Credit
    heartbeat: HeartbeatRequest
    begin_step: BeginStepRequest
    complete_step: CompleteStepRequest
    fail_step: FailStepRequest
    sleep: SleepRequest
    await_signal: AwaitSignalRequest
    start_child: StartChildRequest
    await_children: AwaitChildrenRequest
    complete_workflow: CompleteWorkflowRequest
    fail_workflow: FailWorkflowRequest
    release_task: ReleaseTaskRequest
    goodbye: DeregisterRequest
    set_note: SetNote
    after: int
    batch: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, seq: _Optional[int] = ..., hello: _Optional[_Union[RegisterRequest, _Mapping]] = ..., credit: _Optional[_Union[Credit, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatRequest, _Mapping]] = ..., begin_step: _Optional[_Union[BeginStepRequest, _Mapping]] = ..., complete_step: _Optional[_Union[CompleteStepRequest, _Mapping]] = ..., fail_step: _Optional[_Union[FailStepRequest, _Mapping]] = ..., sleep: _Optional[_Union[SleepRequest, _Mapping]] = ..., await_signal: _Optional[_Union[AwaitSignalRequest, _Mapping]] = ..., start_child: _Optional[_Union[StartChildRequest, _Mapping]] = ..., await_children: _Optional[_Union[AwaitChildrenRequest, _Mapping]] = ..., complete_workflow: _Optional[_Union[CompleteWorkflowRequest, _Mapping]] = ..., fail_workflow: _Optional[_Union[FailWorkflowRequest, _Mapping]] = ..., release_task: _Optional[_Union[ReleaseTaskRequest, _Mapping]] = ..., goodbye: _Optional[_Union[DeregisterRequest, _Mapping]] = ..., set_note: _Optional[_Union[SetNote, _Mapping]] = ..., after: _Optional[int] = ..., batch: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Credit(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: int
    def __init__(self, tasks: _Optional[int] = ...) -> None: ...

class SetNote(_message.Message):
    __slots__ = ("run_id", "lease_token", "note")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_token: str
    note: str
    def __init__(self, run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class SessionResponse(_message.Message):
    __slots__ = ("seq", "welcome", "task", "heartbeat", "begun_step", "completed_step", "failed_step", "sleeping", "awaited_signal", "started_child", "awaited_children", "completed_workflow", "failed_workflow", "released_task", "goodbye", "error", "cancel_task", "drain", "ack", "pause_task", "wait_over", "batch")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    BEGUN_STEP_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_STEP_FIELD_NUMBER: _ClassVar[int]
    FAILED_STEP_FIELD_NUMBER: _ClassVar[int]
    SLEEPING_FIELD_NUMBER: _ClassVar[int]
    AWAITED_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    STARTED_CHILD_FIELD_NUMBER: _ClassVar[int]
    AWAITED_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    FAILED_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    RELEASED_TASK_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CANCEL_TASK_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    PAUSE_TASK_FIELD_NUMBER: _ClassVar[int]
    WAIT_OVER_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    seq: int
    welcome: RegisterResponse
    task: Task
    heartbeat: HeartbeatResponse
    begun_step: BeginStepResponse
    completed_step: CompleteStepResponse
    failed_step: FailStepResponse
    sleeping: SleepResponse
    awaited_signal: AwaitSignalResponse
    started_child: StartChildResponse
    awaited_children: AwaitChildrenResponse
    completed_workflow: CompleteWorkflowResponse
    failed_workflow: FailWorkflowResponse
    released_task: ReleaseTaskResponse
    goodbye: DeregisterResponse
    error: _common_pb2.ErrorDetail
    cancel_task: CancelTask
    drain: DrainRequest
    ack: Ack
    pause_task: PauseTask
    wait_over: WaitOver
    batch: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, seq: _Optional[int] = ..., welcome: _Optional[_Union[RegisterResponse, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatResponse, _Mapping]] = ..., begun_step: _Optional[_Union[BeginStepResponse, _Mapping]] = ..., completed_step: _Optional[_Union[CompleteStepResponse, _Mapping]] = ..., failed_step: _Optional[_Union[FailStepResponse, _Mapping]] = ..., sleeping: _Optional[_Union[SleepResponse, _Mapping]] = ..., awaited_signal: _Optional[_Union[AwaitSignalResponse, _Mapping]] = ..., started_child: _Optional[_Union[StartChildResponse, _Mapping]] = ..., awaited_children: _Optional[_Union[AwaitChildrenResponse, _Mapping]] = ..., completed_workflow: _Optional[_Union[CompleteWorkflowResponse, _Mapping]] = ..., failed_workflow: _Optional[_Union[FailWorkflowResponse, _Mapping]] = ..., released_task: _Optional[_Union[ReleaseTaskResponse, _Mapping]] = ..., goodbye: _Optional[_Union[DeregisterResponse, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., cancel_task: _Optional[_Union[CancelTask, _Mapping]] = ..., drain: _Optional[_Union[DrainRequest, _Mapping]] = ..., ack: _Optional[_Union[Ack, _Mapping]] = ..., pause_task: _Optional[_Union[PauseTask, _Mapping]] = ..., wait_over: _Optional[_Union[WaitOver, _Mapping]] = ..., batch: _Optional[_Iterable[bytes]] = ...) -> None: ...

class Ack(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CancelTask(_message.Message):
    __slots__ = ("run_id", "lease_token", "reason", "grace_until")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GRACE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_token: str
    reason: _common_pb2.ErrorDetail
    grace_until: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., reason: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., grace_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PauseTask(_message.Message):
    __slots__ = ("run_id", "lease_token", "taken_back")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TAKEN_BACK_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_token: str
    taken_back: bool
    def __init__(self, run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., taken_back: bool = ...) -> None: ...

class WaitOver(_message.Message):
    __slots__ = ("run_id", "lease_token", "step_name")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    lease_token: str
    step_name: str
    def __init__(self, run_id: _Optional[str] = ..., lease_token: _Optional[str] = ..., step_name: _Optional[str] = ...) -> None: ...

class DrainRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
