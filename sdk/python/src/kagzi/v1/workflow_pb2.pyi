from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkflowStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKFLOW_STATUS_UNSPECIFIED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_PENDING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_RUNNING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_SLEEPING: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_COMPLETED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_FAILED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_CANCELLED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_SCHEDULED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_PAUSED: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_TIMED_OUT: _ClassVar[WorkflowStatus]
    WORKFLOW_STATUS_TERMINATED: _ClassVar[WorkflowStatus]

class ConcurrencyScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONCURRENCY_SCOPE_UNSPECIFIED: _ClassVar[ConcurrencyScope]
    CONCURRENCY_SCOPE_SLOT: _ClassVar[ConcurrencyScope]
    CONCURRENCY_SCOPE_OPEN: _ClassVar[ConcurrencyScope]

class ExternalIdReuse(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXTERNAL_ID_REUSE_UNSPECIFIED: _ClassVar[ExternalIdReuse]
    EXTERNAL_ID_REUSE_NEVER: _ClassVar[ExternalIdReuse]
    EXTERNAL_ID_REUSE_REJECT: _ClassVar[ExternalIdReuse]

class BulkAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BULK_ACTION_UNSPECIFIED: _ClassVar[BulkAction]
    BULK_ACTION_CANCEL: _ClassVar[BulkAction]
    BULK_ACTION_TERMINATE: _ClassVar[BulkAction]
    BULK_ACTION_RETRY: _ClassVar[BulkAction]

class StepKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_KIND_UNSPECIFIED: _ClassVar[StepKind]
    STEP_KIND_FUNCTION: _ClassVar[StepKind]
    STEP_KIND_SLEEP: _ClassVar[StepKind]
    STEP_KIND_CHILD_WORKFLOW: _ClassVar[StepKind]
    STEP_KIND_SIGNAL: _ClassVar[StepKind]

class StepStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_STATUS_UNSPECIFIED: _ClassVar[StepStatus]
    STEP_STATUS_PENDING: _ClassVar[StepStatus]
    STEP_STATUS_RUNNING: _ClassVar[StepStatus]
    STEP_STATUS_COMPLETED: _ClassVar[StepStatus]
    STEP_STATUS_FAILED: _ClassVar[StepStatus]
WORKFLOW_STATUS_UNSPECIFIED: WorkflowStatus
WORKFLOW_STATUS_PENDING: WorkflowStatus
WORKFLOW_STATUS_RUNNING: WorkflowStatus
WORKFLOW_STATUS_SLEEPING: WorkflowStatus
WORKFLOW_STATUS_COMPLETED: WorkflowStatus
WORKFLOW_STATUS_FAILED: WorkflowStatus
WORKFLOW_STATUS_CANCELLED: WorkflowStatus
WORKFLOW_STATUS_SCHEDULED: WorkflowStatus
WORKFLOW_STATUS_PAUSED: WorkflowStatus
WORKFLOW_STATUS_TIMED_OUT: WorkflowStatus
WORKFLOW_STATUS_TERMINATED: WorkflowStatus
CONCURRENCY_SCOPE_UNSPECIFIED: ConcurrencyScope
CONCURRENCY_SCOPE_SLOT: ConcurrencyScope
CONCURRENCY_SCOPE_OPEN: ConcurrencyScope
EXTERNAL_ID_REUSE_UNSPECIFIED: ExternalIdReuse
EXTERNAL_ID_REUSE_NEVER: ExternalIdReuse
EXTERNAL_ID_REUSE_REJECT: ExternalIdReuse
BULK_ACTION_UNSPECIFIED: BulkAction
BULK_ACTION_CANCEL: BulkAction
BULK_ACTION_TERMINATE: BulkAction
BULK_ACTION_RETRY: BulkAction
STEP_KIND_UNSPECIFIED: StepKind
STEP_KIND_FUNCTION: StepKind
STEP_KIND_SLEEP: StepKind
STEP_KIND_CHILD_WORKFLOW: StepKind
STEP_KIND_SIGNAL: StepKind
STEP_STATUS_UNSPECIFIED: StepStatus
STEP_STATUS_PENDING: StepStatus
STEP_STATUS_RUNNING: StepStatus
STEP_STATUS_COMPLETED: StepStatus
STEP_STATUS_FAILED: StepStatus

class Workflow(_message.Message):
    __slots__ = ("namespace", "run_id", "external_id", "task_queue", "workflow_type", "status", "version", "input", "output", "error", "attempts", "priority", "timeout_ms", "created_at", "started_at", "finished_at", "wake_up_at", "worker_id", "parent_run_id", "parent_step_id", "schedule_id", "cron_expr", "deadline_at", "tags", "waiting_for", "retry_policy", "timeouts", "on_failure_workflow", "on_failure_task_queue", "retried_from_run_id", "failed_run_id", "requirements", "step_count", "note", "paused", "concurrency_key", "lease_losses", "continued_as_run_id", "cancel_requested_at", "scheduled_at", "pinned", "cancel_grace_until", "concurrency_limit", "continued_from_run_id", "parent_close_policy", "named_deadline_at", "below_handler", "first_run_id", "pausing", "paused_at", "divergences", "unreached", "unread_signals", "owed_from", "pause_reason", "concurrency_scope", "has_place", "step_retries", "run_retry_policy")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RequirementsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    WAKE_UP_AT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    CRON_EXPR_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    RETRIED_FROM_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FAILED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    STEP_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    LEASE_LOSSES_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_AS_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CANCEL_REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_AT_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    CANCEL_GRACE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTINUED_FROM_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_CLOSE_POLICY_FIELD_NUMBER: _ClassVar[int]
    NAMED_DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    BELOW_HANDLER_FIELD_NUMBER: _ClassVar[int]
    FIRST_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSING_FIELD_NUMBER: _ClassVar[int]
    PAUSED_AT_FIELD_NUMBER: _ClassVar[int]
    DIVERGENCES_FIELD_NUMBER: _ClassVar[int]
    UNREACHED_FIELD_NUMBER: _ClassVar[int]
    UNREAD_SIGNALS_FIELD_NUMBER: _ClassVar[int]
    OWED_FROM_FIELD_NUMBER: _ClassVar[int]
    PAUSE_REASON_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    HAS_PLACE_FIELD_NUMBER: _ClassVar[int]
    STEP_RETRIES_FIELD_NUMBER: _ClassVar[int]
    RUN_RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    external_id: str
    task_queue: str
    workflow_type: str
    status: WorkflowStatus
    version: str
    input: _common_pb2.Payload
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    attempts: int
    priority: int
    timeout_ms: int
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    wake_up_at: _timestamp_pb2.Timestamp
    worker_id: str
    parent_run_id: str
    parent_step_id: str
    schedule_id: str
    cron_expr: str
    deadline_at: _timestamp_pb2.Timestamp
    tags: _containers.ScalarMap[str, str]
    waiting_for: str
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    on_failure_workflow: str
    on_failure_task_queue: str
    retried_from_run_id: str
    failed_run_id: str
    requirements: _containers.ScalarMap[str, str]
    step_count: int
    note: str
    paused: bool
    concurrency_key: str
    lease_losses: int
    continued_as_run_id: str
    cancel_requested_at: _timestamp_pb2.Timestamp
    scheduled_at: _timestamp_pb2.Timestamp
    pinned: bool
    cancel_grace_until: _timestamp_pb2.Timestamp
    concurrency_limit: int
    continued_from_run_id: str
    parent_close_policy: _common_pb2.ParentClosePolicy
    named_deadline_at: _timestamp_pb2.Timestamp
    below_handler: bool
    first_run_id: str
    pausing: bool
    paused_at: _timestamp_pb2.Timestamp
    divergences: _containers.RepeatedCompositeFieldContainer[Divergence]
    unreached: _containers.RepeatedScalarFieldContainer[str]
    unread_signals: int
    owed_from: int
    pause_reason: str
    concurrency_scope: ConcurrencyScope
    has_place: bool
    step_retries: int
    run_retry_policy: _common_pb2.RetryPolicy
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., external_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., version: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., attempts: _Optional[int] = ..., priority: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., wake_up_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., worker_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., parent_step_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., cron_expr: _Optional[str] = ..., deadline_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., tags: _Optional[_Mapping[str, str]] = ..., waiting_for: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., on_failure_workflow: _Optional[str] = ..., on_failure_task_queue: _Optional[str] = ..., retried_from_run_id: _Optional[str] = ..., failed_run_id: _Optional[str] = ..., requirements: _Optional[_Mapping[str, str]] = ..., step_count: _Optional[int] = ..., note: _Optional[str] = ..., paused: bool = ..., concurrency_key: _Optional[str] = ..., lease_losses: _Optional[int] = ..., continued_as_run_id: _Optional[str] = ..., cancel_requested_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., scheduled_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., pinned: bool = ..., cancel_grace_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., concurrency_limit: _Optional[int] = ..., continued_from_run_id: _Optional[str] = ..., parent_close_policy: _Optional[_Union[_common_pb2.ParentClosePolicy, str]] = ..., named_deadline_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., below_handler: bool = ..., first_run_id: _Optional[str] = ..., pausing: bool = ..., paused_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., divergences: _Optional[_Iterable[_Union[Divergence, _Mapping]]] = ..., unreached: _Optional[_Iterable[str]] = ..., unread_signals: _Optional[int] = ..., owed_from: _Optional[int] = ..., pause_reason: _Optional[str] = ..., concurrency_scope: _Optional[_Union[ConcurrencyScope, str]] = ..., has_place: bool = ..., step_retries: _Optional[int] = ..., run_retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class StartWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "external_id", "task_queue", "workflow_type", "input", "version", "retry_policy", "timeouts", "deadline_at", "on_failure_workflow", "on_failure_task_queue", "start_at", "priority", "tags", "requirements", "external_id_reuse", "parent_run_id", "parent_step_id", "request_id", "concurrency_key", "concurrency_limit", "traceparent", "start_in", "concurrency_scope", "run_retry_policy")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class RequirementsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_AT_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    ON_FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    START_AT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENTS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_REUSE_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_STEP_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_LIMIT_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    START_IN_FIELD_NUMBER: _ClassVar[int]
    CONCURRENCY_SCOPE_FIELD_NUMBER: _ClassVar[int]
    RUN_RETRY_POLICY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    external_id: str
    task_queue: str
    workflow_type: str
    input: _common_pb2.Payload
    version: str
    retry_policy: _common_pb2.RetryPolicy
    timeouts: _common_pb2.TimeoutConfig
    deadline_at: _timestamp_pb2.Timestamp
    on_failure_workflow: str
    on_failure_task_queue: str
    start_at: _timestamp_pb2.Timestamp
    priority: int
    tags: _containers.ScalarMap[str, str]
    requirements: _containers.ScalarMap[str, str]
    external_id_reuse: ExternalIdReuse
    parent_run_id: str
    parent_step_id: str
    request_id: str
    concurrency_key: str
    concurrency_limit: int
    traceparent: str
    start_in: _duration_pb2.Duration
    concurrency_scope: ConcurrencyScope
    run_retry_policy: _common_pb2.RetryPolicy
    def __init__(self, namespace: _Optional[str] = ..., external_id: _Optional[str] = ..., task_queue: _Optional[str] = ..., workflow_type: _Optional[str] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., version: _Optional[str] = ..., retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.TimeoutConfig, _Mapping]] = ..., deadline_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., on_failure_workflow: _Optional[str] = ..., on_failure_task_queue: _Optional[str] = ..., start_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., priority: _Optional[int] = ..., tags: _Optional[_Mapping[str, str]] = ..., requirements: _Optional[_Mapping[str, str]] = ..., external_id_reuse: _Optional[_Union[ExternalIdReuse, str]] = ..., parent_run_id: _Optional[str] = ..., parent_step_id: _Optional[str] = ..., request_id: _Optional[str] = ..., concurrency_key: _Optional[str] = ..., concurrency_limit: _Optional[int] = ..., traceparent: _Optional[str] = ..., start_in: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., concurrency_scope: _Optional[_Union[ConcurrencyScope, str]] = ..., run_retry_policy: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ...) -> None: ...

class StartWorkflowResponse(_message.Message):
    __slots__ = ("run_id", "already_exists", "other_input")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_EXISTS_FIELD_NUMBER: _ClassVar[int]
    OTHER_INPUT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    already_exists: bool
    other_input: bool
    def __init__(self, run_id: _Optional[str] = ..., already_exists: bool = ..., other_input: bool = ...) -> None: ...

class StartWorkflowsRequest(_message.Message):
    __slots__ = ("requests",)
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[StartWorkflowRequest]
    def __init__(self, requests: _Optional[_Iterable[_Union[StartWorkflowRequest, _Mapping]]] = ...) -> None: ...

class StartWorkflowsResponse(_message.Message):
    __slots__ = ("results",)
    class Result(_message.Message):
        __slots__ = ("started", "error", "status_code")
        STARTED_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
        started: StartWorkflowResponse
        error: _common_pb2.ErrorDetail
        status_code: int
        def __init__(self, started: _Optional[_Union[StartWorkflowResponse, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., status_code: _Optional[int] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[StartWorkflowsResponse.Result]
    def __init__(self, results: _Optional[_Iterable[_Union[StartWorkflowsResponse.Result, _Mapping]]] = ...) -> None: ...

class GetWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class GetWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class GetWorkflowByExternalIdRequest(_message.Message):
    __slots__ = ("namespace", "external_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    external_id: str
    def __init__(self, namespace: _Optional[str] = ..., external_id: _Optional[str] = ...) -> None: ...

class GetWorkflowByExternalIdResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class ListWorkflowsRequest(_message.Message):
    __slots__ = ("namespace", "status_filter", "page", "workflow_type", "task_queue", "created_after", "created_before", "statuses", "tags", "schedule_id", "parent_run_id", "worker_id", "search", "workflow_types", "task_queues", "query")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FILTER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    CREATED_AFTER_FIELD_NUMBER: _ClassVar[int]
    CREATED_BEFORE_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PARENT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPES_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUES_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    status_filter: WorkflowStatus
    page: _common_pb2.PageRequest
    workflow_type: str
    task_queue: str
    created_after: _timestamp_pb2.Timestamp
    created_before: _timestamp_pb2.Timestamp
    statuses: _containers.RepeatedScalarFieldContainer[WorkflowStatus]
    tags: _containers.ScalarMap[str, str]
    schedule_id: str
    parent_run_id: str
    worker_id: str
    search: str
    workflow_types: _containers.RepeatedScalarFieldContainer[str]
    task_queues: _containers.RepeatedScalarFieldContainer[str]
    query: str
    def __init__(self, namespace: _Optional[str] = ..., status_filter: _Optional[_Union[WorkflowStatus, str]] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., workflow_type: _Optional[str] = ..., task_queue: _Optional[str] = ..., created_after: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., created_before: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., statuses: _Optional[_Iterable[_Union[WorkflowStatus, str]]] = ..., tags: _Optional[_Mapping[str, str]] = ..., schedule_id: _Optional[str] = ..., parent_run_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., search: _Optional[str] = ..., workflow_types: _Optional[_Iterable[str]] = ..., task_queues: _Optional[_Iterable[str]] = ..., query: _Optional[str] = ...) -> None: ...

class ListWorkflowsResponse(_message.Message):
    __slots__ = ("workflows", "page")
    WORKFLOWS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    workflows: _containers.RepeatedCompositeFieldContainer[Workflow]
    page: _common_pb2.PageInfo
    def __init__(self, workflows: _Optional[_Iterable[_Union[Workflow, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class WaitWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "wait")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    wait: _duration_pb2.Duration
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., wait: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitWorkflowResponse(_message.Message):
    __slots__ = ("workflow", "finished")
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    finished: bool
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ..., finished: bool = ...) -> None: ...

class AwaitWorkflowsRequest(_message.Message):
    __slots__ = ("namespace", "waits", "forget")
    class Wait(_message.Message):
        __slots__ = ("seq", "run_id", "whole")
        SEQ_FIELD_NUMBER: _ClassVar[int]
        RUN_ID_FIELD_NUMBER: _ClassVar[int]
        WHOLE_FIELD_NUMBER: _ClassVar[int]
        seq: int
        run_id: str
        whole: bool
        def __init__(self, seq: _Optional[int] = ..., run_id: _Optional[str] = ..., whole: bool = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    WAITS_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    waits: _containers.RepeatedCompositeFieldContainer[AwaitWorkflowsRequest.Wait]
    forget: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, namespace: _Optional[str] = ..., waits: _Optional[_Iterable[_Union[AwaitWorkflowsRequest.Wait, _Mapping]]] = ..., forget: _Optional[_Iterable[int]] = ...) -> None: ...

class AwaitWorkflowsResponse(_message.Message):
    __slots__ = ("ended",)
    class Ended(_message.Message):
        __slots__ = ("seq", "status", "output", "error", "continued_as_run_id", "workflow", "refusal", "status_code")
        SEQ_FIELD_NUMBER: _ClassVar[int]
        STATUS_FIELD_NUMBER: _ClassVar[int]
        OUTPUT_FIELD_NUMBER: _ClassVar[int]
        ERROR_FIELD_NUMBER: _ClassVar[int]
        CONTINUED_AS_RUN_ID_FIELD_NUMBER: _ClassVar[int]
        WORKFLOW_FIELD_NUMBER: _ClassVar[int]
        REFUSAL_FIELD_NUMBER: _ClassVar[int]
        STATUS_CODE_FIELD_NUMBER: _ClassVar[int]
        seq: int
        status: WorkflowStatus
        output: _common_pb2.Payload
        error: _common_pb2.ErrorDetail
        continued_as_run_id: str
        workflow: Workflow
        refusal: _common_pb2.ErrorDetail
        status_code: int
        def __init__(self, seq: _Optional[int] = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., continued_as_run_id: _Optional[str] = ..., workflow: _Optional[_Union[Workflow, _Mapping]] = ..., refusal: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., status_code: _Optional[int] = ...) -> None: ...
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ended: _containers.RepeatedCompositeFieldContainer[AwaitWorkflowsResponse.Ended]
    def __init__(self, ended: _Optional[_Iterable[_Union[AwaitWorkflowsResponse.Ended, _Mapping]]] = ...) -> None: ...

class WatchWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "run_only")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ONLY_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    run_only: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., run_only: bool = ...) -> None: ...

class WatchWorkflowEvent(_message.Message):
    __slots__ = ("workflow", "steps", "snapshot_done")
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_DONE_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    snapshot_done: bool
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., snapshot_done: bool = ...) -> None: ...

class CancelWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "grace", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    grace: _duration_pb2.Duration
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelWorkflowResponse(_message.Message):
    __slots__ = ("cancelled", "status", "requested", "grace_until")
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    GRACE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    cancelled: bool
    status: WorkflowStatus
    requested: bool
    grace_until: _timestamp_pb2.Timestamp
    def __init__(self, cancelled: bool = ..., status: _Optional[_Union[WorkflowStatus, str]] = ..., requested: bool = ..., grace_until: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TerminateWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class TerminateWorkflowResponse(_message.Message):
    __slots__ = ("terminated", "status")
    TERMINATED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    terminated: bool
    status: WorkflowStatus
    def __init__(self, terminated: bool = ..., status: _Optional[_Union[WorkflowStatus, str]] = ...) -> None: ...

class RetryWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "from_step", "restart", "input", "request_id", "reason", "unless_retried", "keep_all")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_STEP_FIELD_NUMBER: _ClassVar[int]
    RESTART_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    UNLESS_RETRIED_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALL_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    from_step: str
    restart: bool
    input: _common_pb2.Payload
    request_id: str
    reason: str
    unless_retried: bool
    keep_all: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., from_step: _Optional[str] = ..., restart: bool = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., request_id: _Optional[str] = ..., reason: _Optional[str] = ..., unless_retried: bool = ..., keep_all: bool = ...) -> None: ...

class RetryWorkflowResponse(_message.Message):
    __slots__ = ("new_run_id", "already_running", "already_retried")
    NEW_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RUNNING_FIELD_NUMBER: _ClassVar[int]
    ALREADY_RETRIED_FIELD_NUMBER: _ClassVar[int]
    new_run_id: str
    already_running: bool
    already_retried: bool
    def __init__(self, new_run_id: _Optional[str] = ..., already_running: bool = ..., already_retried: bool = ...) -> None: ...

class PauseWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "reason", "now")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    reason: str
    now: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., reason: _Optional[str] = ..., now: bool = ...) -> None: ...

class PauseWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class ResumeWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "reason", "accept_divergence")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_DIVERGENCE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    reason: str
    accept_divergence: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., reason: _Optional[str] = ..., accept_divergence: bool = ...) -> None: ...

class ResumeWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class OverrideStepRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "step_name", "output", "error", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    step_name: str
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., step_name: _Optional[str] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class OverrideStepResponse(_message.Message):
    __slots__ = ("step",)
    STEP_FIELD_NUMBER: _ClassVar[int]
    step: Step
    def __init__(self, step: _Optional[_Union[Step, _Mapping]] = ...) -> None: ...

class ExplainWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class ExplainWorkflowResponse(_message.Message):
    __slots__ = ("summary", "details", "blocker", "since", "next_at", "blocked")
    class Blocker(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        BLOCKER_UNSPECIFIED: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_NONE: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_NO_WORKER: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_WORKERS_BUSY: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_RETRY_DELAY: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_TIMER: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_SIGNAL: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_CHILD: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_PAUSED: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_CONCURRENCY_LIMIT: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_NAMESPACE_DISABLED: _ClassVar[ExplainWorkflowResponse.Blocker]
        BLOCKER_NOT_YET_STARTED: _ClassVar[ExplainWorkflowResponse.Blocker]
    BLOCKER_UNSPECIFIED: ExplainWorkflowResponse.Blocker
    BLOCKER_NONE: ExplainWorkflowResponse.Blocker
    BLOCKER_NO_WORKER: ExplainWorkflowResponse.Blocker
    BLOCKER_WORKERS_BUSY: ExplainWorkflowResponse.Blocker
    BLOCKER_RETRY_DELAY: ExplainWorkflowResponse.Blocker
    BLOCKER_TIMER: ExplainWorkflowResponse.Blocker
    BLOCKER_SIGNAL: ExplainWorkflowResponse.Blocker
    BLOCKER_CHILD: ExplainWorkflowResponse.Blocker
    BLOCKER_PAUSED: ExplainWorkflowResponse.Blocker
    BLOCKER_CONCURRENCY_LIMIT: ExplainWorkflowResponse.Blocker
    BLOCKER_NAMESPACE_DISABLED: ExplainWorkflowResponse.Blocker
    BLOCKER_NOT_YET_STARTED: ExplainWorkflowResponse.Blocker
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    BLOCKER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_AT_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    summary: str
    details: _containers.RepeatedScalarFieldContainer[str]
    blocker: ExplainWorkflowResponse.Blocker
    since: _timestamp_pb2.Timestamp
    next_at: _timestamp_pb2.Timestamp
    blocked: _containers.RepeatedCompositeFieldContainer[BlockedCode]
    def __init__(self, summary: _Optional[str] = ..., details: _Optional[_Iterable[str]] = ..., blocker: _Optional[_Union[ExplainWorkflowResponse.Blocker, str]] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., next_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., blocked: _Optional[_Iterable[_Union[BlockedCode, _Mapping]]] = ...) -> None: ...

class ExportWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "redact_payloads")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REDACT_PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    redact_payloads: bool
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., redact_payloads: bool = ...) -> None: ...

class Capsule(_message.Message):
    __slots__ = ("data", "namespace", "request_id")
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    namespace: str
    request_id: str
    def __init__(self, data: _Optional[bytes] = ..., namespace: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class ImportWorkflowResponse(_message.Message):
    __slots__ = ("run_id", "runs", "already_imported")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    ALREADY_IMPORTED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    runs: int
    already_imported: bool
    def __init__(self, run_id: _Optional[str] = ..., runs: _Optional[int] = ..., already_imported: bool = ...) -> None: ...

class SignalWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "name", "payload", "signal_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    name: str
    payload: _common_pb2.Payload
    signal_id: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., name: _Optional[str] = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., signal_id: _Optional[str] = ...) -> None: ...

class SignalWorkflowResponse(_message.Message):
    __slots__ = ("already_delivered",)
    ALREADY_DELIVERED_FIELD_NUMBER: _ClassVar[int]
    already_delivered: bool
    def __init__(self, already_delivered: bool = ...) -> None: ...

class Signal(_message.Message):
    __slots__ = ("sequence", "name", "signal_id", "payload", "received_at", "step_name")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_AT_FIELD_NUMBER: _ClassVar[int]
    STEP_NAME_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    name: str
    signal_id: str
    payload: _common_pb2.Payload
    received_at: _timestamp_pb2.Timestamp
    step_name: str
    def __init__(self, sequence: _Optional[int] = ..., name: _Optional[str] = ..., signal_id: _Optional[str] = ..., payload: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., received_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., step_name: _Optional[str] = ...) -> None: ...

class ListSignalsRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "page")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    page: _common_pb2.PageRequest
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ...) -> None: ...

class ListSignalsResponse(_message.Message):
    __slots__ = ("signals", "page")
    SIGNALS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    signals: _containers.RepeatedCompositeFieldContainer[Signal]
    page: _common_pb2.PageInfo
    def __init__(self, signals: _Optional[_Iterable[_Union[Signal, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class PinWorkflowRequest(_message.Message):
    __slots__ = ("namespace", "run_id", "pinned", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    run_id: str
    pinned: bool
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., run_id: _Optional[str] = ..., pinned: bool = ..., reason: _Optional[str] = ...) -> None: ...

class PinWorkflowResponse(_message.Message):
    __slots__ = ("workflow",)
    WORKFLOW_FIELD_NUMBER: _ClassVar[int]
    workflow: Workflow
    def __init__(self, workflow: _Optional[_Union[Workflow, _Mapping]] = ...) -> None: ...

class BulkWorkflowsRequest(_message.Message):
    __slots__ = ("action", "filter", "reason", "limit", "keep_all", "grace", "selection")
    ACTION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALL_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    action: BulkAction
    filter: ListWorkflowsRequest
    reason: str
    limit: int
    keep_all: bool
    grace: _duration_pb2.Duration
    selection: ListWorkflowsRequest
    def __init__(self, action: _Optional[_Union[BulkAction, str]] = ..., filter: _Optional[_Union[ListWorkflowsRequest, _Mapping]] = ..., reason: _Optional[str] = ..., limit: _Optional[int] = ..., keep_all: bool = ..., grace: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., selection: _Optional[_Union[ListWorkflowsRequest, _Mapping]] = ...) -> None: ...

class BulkWorkflowsProgress(_message.Message):
    __slots__ = ("matched", "done", "failed", "last_error", "last_run_id", "unchanged")
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LAST_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    matched: int
    done: int
    failed: int
    last_error: _common_pb2.ErrorDetail
    last_run_id: str
    unchanged: int
    def __init__(self, matched: _Optional[int] = ..., done: _Optional[int] = ..., failed: _Optional[int] = ..., last_error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., last_run_id: _Optional[str] = ..., unchanged: _Optional[int] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ("namespace", "step_id", "run_id", "name", "kind", "status", "attempt_number", "input", "output", "error", "created_at", "started_at", "finished_at", "child_run_id", "timeout_at", "retry_at", "wake_up_at", "worker_id", "is_latest", "sequence", "overridden_by", "override_reason", "signal_name", "signal_timed_out", "settled", "branch", "begun_in", "child_type")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STEP_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_NUMBER_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    CHILD_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_AT_FIELD_NUMBER: _ClassVar[int]
    RETRY_AT_FIELD_NUMBER: _ClassVar[int]
    WAKE_UP_AT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    IS_LATEST_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OVERRIDDEN_BY_FIELD_NUMBER: _ClassVar[int]
    OVERRIDE_REASON_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_NAME_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    BEGUN_IN_FIELD_NUMBER: _ClassVar[int]
    CHILD_TYPE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    step_id: str
    run_id: str
    name: str
    kind: StepKind
    status: StepStatus
    attempt_number: int
    input: _common_pb2.Payload
    output: _common_pb2.Payload
    error: _common_pb2.ErrorDetail
    created_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    child_run_id: str
    timeout_at: _timestamp_pb2.Timestamp
    retry_at: _timestamp_pb2.Timestamp
    wake_up_at: _timestamp_pb2.Timestamp
    worker_id: str
    is_latest: bool
    sequence: int
    overridden_by: str
    override_reason: str
    signal_name: str
    signal_timed_out: bool
    settled: int
    branch: str
    begun_in: int
    child_type: str
    def __init__(self, namespace: _Optional[str] = ..., step_id: _Optional[str] = ..., run_id: _Optional[str] = ..., name: _Optional[str] = ..., kind: _Optional[_Union[StepKind, str]] = ..., status: _Optional[_Union[StepStatus, str]] = ..., attempt_number: _Optional[int] = ..., input: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., output: _Optional[_Union[_common_pb2.Payload, _Mapping]] = ..., error: _Optional[_Union[_common_pb2.ErrorDetail, _Mapping]] = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., child_run_id: _Optional[str] = ..., timeout_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., retry_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., wake_up_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., worker_id: _Optional[str] = ..., is_latest: bool = ..., sequence: _Optional[int] = ..., overridden_by: _Optional[str] = ..., override_reason: _Optional[str] = ..., signal_name: _Optional[str] = ..., signal_timed_out: bool = ..., settled: _Optional[int] = ..., branch: _Optional[str] = ..., begun_in: _Optional[int] = ..., child_type: _Optional[str] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("name", "kind", "branch", "detail")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: StepKind
    branch: str
    detail: str
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[_Union[StepKind, str]] = ..., branch: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class BlockedCode(_message.Message):
    __slots__ = ("run_id", "branch", "since", "stack", "held", "owed")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    BRANCH_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    OWED_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    branch: str
    since: _timestamp_pb2.Timestamp
    stack: str
    held: _containers.RepeatedCompositeFieldContainer[Call]
    owed: _containers.RepeatedCompositeFieldContainer[Call]
    def __init__(self, run_id: _Optional[str] = ..., branch: _Optional[str] = ..., since: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., stack: _Optional[str] = ..., held: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., owed: _Optional[_Iterable[_Union[Call, _Mapping]]] = ...) -> None: ...

class Divergence(_message.Message):
    __slots__ = ("made", "owed", "build_id", "reported_at")
    MADE_FIELD_NUMBER: _ClassVar[int]
    OWED_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    REPORTED_AT_FIELD_NUMBER: _ClassVar[int]
    made: _containers.RepeatedCompositeFieldContainer[Call]
    owed: _containers.RepeatedCompositeFieldContainer[Call]
    build_id: str
    reported_at: _timestamp_pb2.Timestamp
    def __init__(self, made: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., owed: _Optional[_Iterable[_Union[Call, _Mapping]]] = ..., build_id: _Optional[str] = ..., reported_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
