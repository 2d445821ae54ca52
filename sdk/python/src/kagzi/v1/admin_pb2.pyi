from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from kagzi.v1 import worker_pb2 as _worker_pb2
from kagzi.v1 import workflow_pb2 as _workflow_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ServingStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SERVING_STATUS_UNSPECIFIED: _ClassVar[ServingStatus]
    SERVING_STATUS_SERVING: _ClassVar[ServingStatus]
    SERVING_STATUS_NOT_SERVING: _ClassVar[ServingStatus]

class KeyRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_ROLE_UNSPECIFIED: _ClassVar[KeyRole]
    KEY_ROLE_ADMIN: _ClassVar[KeyRole]
    KEY_ROLE_OPERATOR: _ClassVar[KeyRole]
    KEY_ROLE_CLIENT: _ClassVar[KeyRole]
    KEY_ROLE_WORKER: _ClassVar[KeyRole]
    KEY_ROLE_VIEWER: _ClassVar[KeyRole]

class HookSignature(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    HOOK_SIGNATURE_UNSPECIFIED: _ClassVar[HookSignature]
    HOOK_SIGNATURE_GITHUB: _ClassVar[HookSignature]
    HOOK_SIGNATURE_STRIPE: _ClassVar[HookSignature]
    HOOK_SIGNATURE_PLAIN: _ClassVar[HookSignature]
SERVING_STATUS_UNSPECIFIED: ServingStatus
SERVING_STATUS_SERVING: ServingStatus
SERVING_STATUS_NOT_SERVING: ServingStatus
KEY_ROLE_UNSPECIFIED: KeyRole
KEY_ROLE_ADMIN: KeyRole
KEY_ROLE_OPERATOR: KeyRole
KEY_ROLE_CLIENT: KeyRole
KEY_ROLE_WORKER: KeyRole
KEY_ROLE_VIEWER: KeyRole
HOOK_SIGNATURE_UNSPECIFIED: HookSignature
HOOK_SIGNATURE_GITHUB: HookSignature
HOOK_SIGNATURE_STRIPE: HookSignature
HOOK_SIGNATURE_PLAIN: HookSignature

class ListWorkersRequest(_message.Message):
    __slots__ = ("namespace", "task_queue", "status_filter", "page", "query")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    task_queue: str
    status_filter: _worker_pb2.WorkerStatus
    page: _common_pb2.PageRequest
    query: str
    def __init__(self, namespace: _Optional[str] = ..., task_queue: _Optional[str] = ..., status_filter: _Optional[_Union[_worker_pb2.WorkerStatus, str]] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., query: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "page")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[_worker_pb2.Worker]
    page: _common_pb2.PageInfo
    def __init__(self, workers: _Optional[_Iterable[_Union[_worker_pb2.Worker, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class MatchWorkersRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "workflow_type", "task_queue", "requirements")
    class RequirementsEntry(_message.Message):
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
    REQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    workflow_type: str
    task_queue: str
    requirements: _containers.ScalarMap[str, str]
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., task_queue: _Optional[str] = ..., requirements: _Optional[_Mapping[str, str]] = ...) -> None: ...

class MatchWorkersResponse(_message.Message):
    __slots__ = ("matches", "more")
    class Match(_message.Message):
        __slots__ = ("worker", "can_run", "busy", "reason")
        WORKER_FIELD_NUMBER: _ClassVar[int]
        CAN_RUN_FIELD_NUMBER: _ClassVar[int]
        BUSY_FIELD_NUMBER: _ClassVar[int]
        REASON_FIELD_NUMBER: _ClassVar[int]
        worker: _worker_pb2.Worker
        can_run: bool
        busy: bool
        reason: str
        def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ..., can_run: bool = ..., busy: bool = ..., reason: _Optional[str] = ...) -> None: ...
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    matches: _containers.RepeatedCompositeFieldContainer[MatchWorkersResponse.Match]
    more: bool
    def __init__(self, matches: _Optional[_Iterable[_Union[MatchWorkersResponse.Match, _Mapping]]] = ..., more: bool = ...) -> None: ...

class GetWorkerRequest(_message.Message):
    __slots__ = ("worker_id",)
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    def __init__(self, worker_id: _Optional[str] = ...) -> None: ...

class GetWorkerResponse(_message.Message):
    __slots__ = ("worker",)
    WORKER_FIELD_NUMBER: _ClassVar[int]
    worker: _worker_pb2.Worker
    def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ...) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ("worker_id",)
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    def __init__(self, worker_id: _Optional[str] = ...) -> None: ...

class DrainWorkerResponse(_message.Message):
    __slots__ = ("success", "message", "error")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    success: bool
    message: str
    error: _common_pb2.ErrorDetail
    def __init__(self, success: bool = ..., message: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ...) -> None: ...

class ForceOfflineWorkerRequest(_message.Message):
    __slots__ = ("worker_id",)
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    def __init__(self, worker_id: _Optional[str] = ...) -> None: ...

class ForceOfflineWorkerResponse(_message.Message):
    __slots__ = ("released_runs",)
    RELEASED_RUNS_FIELD_NUMBER: _ClassVar[int]
    released_runs: int
    def __init__(self, released_runs: _Optional[int] = ...) -> None: ...

class GetStepRequest(_message.Message):
    __slots__ = ("namespace", "step_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    step_id: str
    def __init__(self, namespace: _Optional[str] = ..., step_id: _Optional[str] = ...) -> None: ...

class GetStepResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: _workflow_pb2.Step
    def __init__(self, step: _Optional[_Union[_workflow_pb2.Step, _Mapping]] = ...) -> None: ...

class ListStepsRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_name", "page", "statuses", "latest_only")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    LATEST_ONLY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_name: str
    page: _common_pb2.PageRequest
    statuses: _containers.RepeatedScalarFieldContainer[_workflow_pb2.StepStatus]
    latest_only: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., statuses: _Optional[_Iterable[_Union[_workflow_pb2.StepStatus, str]]] = ..., latest_only: bool = ...) -> None: ...

class ListStepsResponse(_message.Message):
    __slots__ = ("steps", "page")
    STEPS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Step]
    page: _common_pb2.PageInfo
    def __init__(self, steps: _Optional[_Iterable[_Union[_workflow_pb2.Step, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class HealthCheckRequest(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class HealthCheckResponse(_message.Message):
    __slots__ = ("status", "message", "timestamp")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    status: ServingStatus
    message: str
    timestamp: _timestamp_pb2.Timestamp
    def __init__(self, status: _Optional[_Union[ServingStatus, str]] = ..., message: _Optional[str] = ..., timestamp: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "api_version", "supported_features", "min_sdk_version", "backend", "backend_version", "database", "started_at", "database_bytes", "notifications", "heartbeat_interval_ms", "lease_ms", "schema_version", "facts", "methods", "open_connections", "open_streams", "warnings")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    API_VERSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    MIN_SDK_VERSION_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    BACKEND_VERSION_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    DATABASE_BYTES_FIELD_NUMBER: _ClassVar[int]
    NOTIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    METHODS_FIELD_NUMBER: _ClassVar[int]
    OPEN_CONNECTIONS_FIELD_NUMBER: _ClassVar[int]
    OPEN_STREAMS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    version: str
    api_version: str
    supported_features: _containers.RepeatedScalarFieldContainer[str]
    min_sdk_version: str
    backend: str
    backend_version: str
    database: str
    started_at: _timestamp_pb2.Timestamp
    database_bytes: int
    notifications: str
    heartbeat_interval_ms: int
    lease_ms: int
    schema_version: int
    facts: _containers.RepeatedCompositeFieldContainer[ServerFact]
    methods: _containers.RepeatedCompositeFieldContainer[MethodStats]
    open_connections: int
    open_streams: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[str] = ..., api_version: _Optional[str] = ..., supported_features: _Optional[_Iterable[str]] = ..., min_sdk_version: _Optional[str] = ..., backend: _Optional[str] = ..., backend_version: _Optional[str] = ..., database: _Optional[str] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., database_bytes: _Optional[int] = ..., notifications: _Optional[str] = ..., heartbeat_interval_ms: _Optional[int] = ..., lease_ms: _Optional[int] = ..., schema_version: _Optional[int] = ..., facts: _Optional[_Iterable[_Union[ServerFact, _Mapping]]] = ..., methods: _Optional[_Iterable[_Union[MethodStats, _Mapping]]] = ..., open_connections: _Optional[int] = ..., open_streams: _Optional[int] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class ServerFact(_message.Message):
    __slots__ = ("section", "name", "value", "source")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    section: str
    name: str
    value: str
    source: str
    def __init__(self, section: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class MethodStats(_message.Message):
    __slots__ = ("method", "calls", "errors", "in_flight", "p50_ms", "p95_ms")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    P50_MS_FIELD_NUMBER: _ClassVar[int]
    P95_MS_FIELD_NUMBER: _ClassVar[int]
    method: str
    calls: int
    errors: int
    in_flight: int
    p50_ms: float
    p95_ms: float
    def __init__(self, method: _Optional[str] = ..., calls: _Optional[int] = ..., errors: _Optional[int] = ..., in_flight: _Optional[int] = ..., p50_ms: _Optional[float] = ..., p95_ms: _Optional[float] = ...) -> None: ...

class GetStatsRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("total_workflows", "pending_workflows", "running_workflows", "completed_workflows", "failed_workflows", "total_workers", "online_workers", "total_schedules", "enabled_schedules", "workflows_by_status", "workflows_by_type", "at", "runs_started_per_second", "runs_finished_per_second", "steps_completed_per_second", "oldest_pending_seconds")
    class WorkflowsByStatusEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class WorkflowsByTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TOTAL_WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    PENDING_WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    FAILED_WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_WORKERS_FIELD_NUMBER: _ClassVar[int]
    ONLINE_WORKERS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    ENABLED_SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    WORKFLOWS_BY_STATUS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOWS_BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    RUNS_STARTED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    RUNS_FINISHED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STEPS_COMPLETED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PENDING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    total_workflows: int
    pending_workflows: int
    running_workflows: int
    completed_workflows: int
    failed_workflows: int
    total_workers: int
    online_workers: int
    total_schedules: int
    enabled_schedules: int
    workflows_by_status: _containers.ScalarMap[str, int]
    workflows_by_type: _containers.ScalarMap[str, int]
    at: _timestamp_pb2.Timestamp
    runs_started_per_second: float
    runs_finished_per_second: float
    steps_completed_per_second: float
    oldest_pending_seconds: float
    def __init__(self, total_workflows: _Optional[int] = ..., pending_workflows: _Optional[int] = ..., running_workflows: _Optional[int] = ..., completed_workflows: _Optional[int] = ..., failed_workflows: _Optional[int] = ..., total_workers: _Optional[int] = ..., online_workers: _Optional[int] = ..., total_schedules: _Optional[int] = ..., enabled_schedules: _Optional[int] = ..., workflows_by_status: _Optional[_Mapping[str, int]] = ..., workflows_by_type: _Optional[_Mapping[str, int]] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., runs_started_per_second: _Optional[float] = ..., runs_finished_per_second: _Optional[float] = ..., steps_completed_per_second: _Optional[float] = ..., oldest_pending_seconds: _Optional[float] = ...) -> None: ...

class WatchStatsRequest(_message.Message):
    __slots__ = ("namespace", "interval")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    interval: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetQueueDepthRequest(_message.Message):
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

class GetQueueDepthResponse(_message.Message):
    __slots__ = ("pending_count", "running_count", "sleeping_count", "depth_by_queue", "queues", "page")
    class DepthByQueueEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUNNING_COUNT_FIELD_NUMBER: _ClassVar[int]
    SLEEPING_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPTH_BY_QUEUE_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    pending_count: int
    running_count: int
    sleeping_count: int
    depth_by_queue: _containers.ScalarMap[str, int]
    queues: _containers.RepeatedCompositeFieldContainer[QueueDepth]
    page: _common_pb2.PageInfo
    def __init__(self, pending_count: _Optional[int] = ..., running_count: _Optional[int] = ..., sleeping_count: _Optional[int] = ..., depth_by_queue: _Optional[_Mapping[str, int]] = ..., queues: _Optional[_Iterable[_Union[QueueDepth, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class QueueDepth(_message.Message):
    __slots__ = ("task_queue", "pending", "running", "sleeping", "oldest_pending_seconds", "online_workers", "unserved_by_type")
    class UnservedByTypeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    SLEEPING_FIELD_NUMBER: _ClassVar[int]
    OLDEST_PENDING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ONLINE_WORKERS_FIELD_NUMBER: _ClassVar[int]
    UNSERVED_BY_TYPE_FIELD_NUMBER: _ClassVar[int]
    task_queue: str
    pending: int
    running: int
    sleeping: int
    oldest_pending_seconds: float
    online_workers: int
    unserved_by_type: _containers.ScalarMap[str, int]
    def __init__(self, task_queue: _Optional[str] = ..., pending: _Optional[int] = ..., running: _Optional[int] = ..., sleeping: _Optional[int] = ..., oldest_pending_seconds: _Optional[float] = ..., online_workers: _Optional[int] = ..., unserved_by_type: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListWorkflowTypesRequest(_message.Message):
    __slots__ = ("namespace", "page", "query")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page: _common_pb2.PageRequest
    query: str
    def __init__(self, namespace: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., query: _Optional[str] = ...) -> None: ...

class ListWorkflowTypesResponse(_message.Message):
    __slots__ = ("workflow_types", "page")
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workflow_types: _containers.RepeatedCompositeFieldContainer[WorkflowTypeInfo]
    page: _common_pb2.PageInfo
    def __init__(self, workflow_types: _Optional[_Iterable[_Union[WorkflowTypeInfo, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class WorkflowTypeInfo(_message.Message):
    __slots__ = ("workflow_type", "total_runs", "active_runs", "task_queues")
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_RUNS_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_RUNS_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUES_FIELD_NUMBER: _ClassVar[int]
    workflow_type: str
    total_runs: int
    active_runs: int
    task_queues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, workflow_type: _Optional[str] = ..., total_runs: _Optional[int] = ..., active_runs: _Optional[int] = ..., task_queues: _Optional[_Iterable[str]] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackupChunk(_message.Message):
    __slots__ = ("data", "total_bytes", "sha256")
    DATA_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    total_bytes: int
    sha256: bytes
    def __init__(self, data: _Optional[bytes] = ..., total_bytes: _Optional[int] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class Key(_message.Message):
    __slots__ = ("key_id", "name", "role", "namespaces", "task_queues", "workflow_types", "created_at", "expires_at", "last_used_at", "revoked_at", "worker_ids")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUES_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    REVOKED_AT_FIELD_NUMBER: _ClassVar[int]
    WORKER_IDS_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    name: str
    role: KeyRole
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    task_queues: _containers.RepeatedScalarFieldContainer[str]
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    created_at: _timestamp_pb2.Timestamp
    expires_at: _timestamp_pb2.Timestamp
    last_used_at: _timestamp_pb2.Timestamp
    revoked_at: _timestamp_pb2.Timestamp
    worker_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key_id: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[_Union[KeyRole, str]] = ..., namespaces: _Optional[_Iterable[str]] = ..., task_queues: _Optional[_Iterable[str]] = ..., workflow_types: _Optional[_Iterable[str]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., last_used_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., revoked_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., worker_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateKeyRequest(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: Key
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ...) -> None: ...

class CreateKeyResponse(_message.Message):
    __slots__ = ("key", "secret")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    key: Key
    secret: str
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ("page", "query")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    page: _common_pb2.PageRequest
    query: str
    def __init__(self, page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., query: _Optional[str] = ...) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys", "page")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[Key]
    page: _common_pb2.PageInfo
    def __init__(self, keys: _Optional[_Iterable[_Union[Key, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class RevokeKeyRequest(_message.Message):
    __slots__ = ("key_id",)
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    def __init__(self, key_id: _Optional[str] = ...) -> None: ...

class RevokeKeyResponse(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: Key
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ...) -> None: ...

class Hook(_message.Message):
    __slots__ = ("hook_id", "namespace", "name", "task_queue", "workflow_type", "signature", "path", "created_at", "rotated_at", "old_secret_until")
    HOOK_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    ROTATED_AT_FIELD_NUMBER: _ClassVar[int]
    OLD_SECRET_UNTIL_FIELD_NUMBER: _ClassVar[int]
    hook_id: str
    namespace: str
    name: str
    task_queue: str
    workflow_type: str
    signature: HookSignature
    path: str
    created_at: _timestamp_pb2.Timestamp
    rotated_at: _timestamp_pb2.Timestamp
    old_secret_until: _timestamp_pb2.Timestamp
    def __init__(self, hook_id: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., signature: _Optional[_Union[HookSignature, str]] = ..., path: _Optional[str] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., rotated_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., old_secret_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateHookRequest(_message.Message):
    __slots__ = ("namespace", "name", "task_queue", "workflow_type", "signature", "secret")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    task_queue: str
    workflow_type: str
    signature: HookSignature
    secret: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., signature: _Optional[_Union[HookSignature, str]] = ..., secret: _Optional[str] = ...) -> None: ...

class CreateHookResponse(_message.Message):
    __slots__ = ("hook", "secret")
    HOOK_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    hook: Hook
    secret: str
    def __init__(self, hook: _Optional[_Union[Hook, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class GetHookRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class GetHookResponse(_message.Message):
    __slots__ = ("hook",)
    HOOK_FIELD_NUMBER: _ClassVar[int]
    hook: Hook
    def __init__(self, hook: _Optional[_Union[Hook, _Mapping]] = ...) -> None: ...

class ListHooksRequest(_message.Message):
    __slots__ = ("namespace", "page")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListHooksResponse(_message.Message):
    __slots__ = ("hooks", "page")
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    hooks: _containers.RepeatedCompositeFieldContainer[Hook]
    page: _common_pb2.PageInfo
    def __init__(self, hooks: _Optional[_Iterable[_Union[Hook, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class RotateHookRequest(_message.Message):
    __slots__ = ("namespace", "name", "secret", "overlap")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    secret: str
    overlap: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., secret: _Optional[str] = ..., overlap: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RotateHookResponse(_message.Message):
    __slots__ = ("hook", "secret")
    HOOK_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    hook: Hook
    secret: str
    def __init__(self, hook: _Optional[_Union[Hook, _Mapping]] = ..., secret: _Optional[str] = ...) -> None: ...

class DeleteHookRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class DeleteHookResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListAuditEventsRequest(_message.Message):
    __slots__ = ("namespace", "page", "subject_id", "query")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page: _common_pb2.PageRequest
    subject_id: str
    query: str
    def __init__(self, namespace: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., subject_id: _Optional[str] = ..., query: _Optional[str] = ...) -> None: ...

class ListAuditEventsResponse(_message.Message):
    __slots__ = ("events", "page")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[AuditEvent]
    page: _common_pb2.PageInfo
    def __init__(self, events: _Optional[_Iterable[_Union[AuditEvent, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class AuditEvent(_message.Message):
    __slots__ = ("at", "actor", "peer", "method", "namespace", "subject", "subject_id", "outcome", "reason", "detail")
    AT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    PEER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    actor: str
    peer: str
    method: str
    namespace: str
    subject: str
    subject_id: str
    outcome: str
    reason: str
    detail: str
    def __init__(self, at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., peer: _Optional[str] = ..., method: _Optional[str] = ..., namespace: _Optional[str] = ..., subject: _Optional[str] = ..., subject_id: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("namespace", "interval")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    interval: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., interval: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchEvent(_message.Message):
    __slots__ = ("at", "workflows", "workflows_changed", "workers_changed", "schedules_changed", "namespaces_changed")
    AT_FIELD_NUMBER: _ClassVar[int]
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    WORKFLOWS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    WORKERS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_CHANGED_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_CHANGED_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    workflows: _containers.RepeatedCompositeFieldContainer[_workflow_pb2.Workflow]
    workflows_changed: bool
    workers_changed: bool
    schedules_changed: bool
    namespaces_changed: bool
    def __init__(self, at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., workflows: _Optional[_Iterable[_Union[_workflow_pb2.Workflow, _Mapping]]] = ..., workflows_changed: bool = ..., workers_changed: bool = ..., schedules_changed: bool = ..., namespaces_changed: bool = ...) -> None: ...

class GetActivityRequest(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: _duration_pb2.Duration
    def __init__(self, step: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class GetActivityResponse(_message.Message):
    __slots__ = ("at", "step", "points")
    AT_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    at: _timestamp_pb2.Timestamp
    step: _duration_pb2.Duration
    points: _containers.RepeatedCompositeFieldContainer[ActivityPoint]
    def __init__(self, at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., step: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., points: _Optional[_Iterable[_Union[ActivityPoint, _Mapping]]] = ...) -> None: ...

class ActivityPoint(_message.Message):
    __slots__ = ("runs_started", "runs_completed", "runs_failed", "runs_stopped", "steps_completed", "write_p95_ms", "schedule_lag_ms")
    RUNS_STARTED_FIELD_NUMBER: _ClassVar[int]
    RUNS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    RUNS_FAILED_FIELD_NUMBER: _ClassVar[int]
    RUNS_STOPPED_FIELD_NUMBER: _ClassVar[int]
    STEPS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    WRITE_P95_MS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_LAG_MS_FIELD_NUMBER: _ClassVar[int]
    runs_started: int
    runs_completed: int
    runs_failed: int
    runs_stopped: int
    steps_completed: int
    write_p95_ms: float
    schedule_lag_ms: float
    def __init__(self, runs_started: _Optional[int] = ..., runs_completed: _Optional[int] = ..., runs_failed: _Optional[int] = ..., runs_stopped: _Optional[int] = ..., steps_completed: _Optional[int] = ..., write_p95_ms: _Optional[float] = ..., schedule_lag_ms: _Optional[float] = ...) -> None: ...

class WatchEventsRequest(_message.Message):
    __slots__ = ("after", "tail", "after_at")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    TAIL_FIELD_NUMBER: _ClassVar[int]
    AFTER_AT_FIELD_NUMBER: _ClassVar[int]
    after: int
    tail: int
    after_at: _timestamp_pb2.Timestamp
    def __init__(self, after: _Optional[int] = ..., tail: _Optional[int] = ..., after_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ServerEvent(_message.Message):
    __slots__ = ("sequence", "at", "level", "message", "attributes")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    at: _timestamp_pb2.Timestamp
    level: str
    message: str
    attributes: _containers.RepeatedCompositeFieldContainer[EventAttribute]
    def __init__(self, sequence: _Optional[int] = ..., at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., level: _Optional[str] = ..., message: _Optional[str] = ..., attributes: _Optional[_Iterable[_Union[EventAttribute, _Mapping]]] = ...) -> None: ...

class EventAttribute(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ("key", "keys_required", "encrypted", "certificate", "session_expires_at")
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEYS_REQUIRED_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    SESSION_EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    key: Key
    keys_required: bool
    encrypted: bool
    certificate: str
    session_expires_at: _timestamp_pb2.Timestamp
    def __init__(self, key: _Optional[_Union[Key, _Mapping]] = ..., keys_required: bool = ..., encrypted: bool = ..., certificate: _Optional[str] = ..., session_expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateSessionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CreateSessionResponse(_message.Message):
    __slots__ = ("session_id", "secret", "expires_at", "key")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    secret: str
    expires_at: _timestamp_pb2.Timestamp
    key: Key
    def __init__(self, session_id: _Optional[str] = ..., secret: _Optional[str] = ..., expires_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[_Union[Key, _Mapping]] = ...) -> None: ...

class EndSessionRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EndSessionResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
