from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_ARGUMENT: _ClassVar[ErrorCode]
    ERROR_CODE_PRECONDITION_FAILED: _ClassVar[ErrorCode]
    ERROR_CODE_CONFLICT: _ClassVar[ErrorCode]
    ERROR_CODE_UNAUTHORIZED: _ClassVar[ErrorCode]
    ERROR_CODE_UNAVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_INTERNAL: _ClassVar[ErrorCode]
    ERROR_CODE_TIMEOUT: _ClassVar[ErrorCode]
    ERROR_CODE_CANCELLED: _ClassVar[ErrorCode]
    ERROR_CODE_RESOURCE_EXHAUSTED: _ClassVar[ErrorCode]
    ERROR_CODE_LEASE_LOST: _ClassVar[ErrorCode]
    ERROR_CODE_CRASHED: _ClassVar[ErrorCode]

class ParentClosePolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARENT_CLOSE_POLICY_UNSPECIFIED: _ClassVar[ParentClosePolicy]
    PARENT_CLOSE_POLICY_ABANDON: _ClassVar[ParentClosePolicy]
    PARENT_CLOSE_POLICY_CANCEL: _ClassVar[ParentClosePolicy]
    PARENT_CLOSE_POLICY_TERMINATE: _ClassVar[ParentClosePolicy]
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_NOT_FOUND: ErrorCode
ERROR_CODE_INVALID_ARGUMENT: ErrorCode
ERROR_CODE_PRECONDITION_FAILED: ErrorCode
ERROR_CODE_CONFLICT: ErrorCode
ERROR_CODE_UNAUTHORIZED: ErrorCode
ERROR_CODE_UNAVAILABLE: ErrorCode
ERROR_CODE_INTERNAL: ErrorCode
ERROR_CODE_TIMEOUT: ErrorCode
ERROR_CODE_CANCELLED: ErrorCode
ERROR_CODE_RESOURCE_EXHAUSTED: ErrorCode
ERROR_CODE_LEASE_LOST: ErrorCode
ERROR_CODE_CRASHED: ErrorCode
PARENT_CLOSE_POLICY_UNSPECIFIED: ParentClosePolicy
PARENT_CLOSE_POLICY_ABANDON: ParentClosePolicy
PARENT_CLOSE_POLICY_CANCEL: ParentClosePolicy
PARENT_CLOSE_POLICY_TERMINATE: ParentClosePolicy

class Payload(_message.Message):
    __slots__ = ("data", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DATA_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, data: _Optional[bytes] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class PageRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "include_total_count", "last")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    include_total_count: bool
    last: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., include_total_count: bool = ..., last: bool = ...) -> None: ...

class PageInfo(_message.Message):
    __slots__ = ("next_page_token", "has_more", "total_count", "prev_page_token")
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    HAS_MORE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    PREV_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    next_page_token: str
    has_more: bool
    total_count: int
    prev_page_token: str
    def __init__(self, next_page_token: _Optional[str] = ..., has_more: bool = ..., total_count: _Optional[int] = ..., prev_page_token: _Optional[str] = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("code", "message", "non_retryable", "retry_after_ms", "subject", "subject_id", "metadata", "type", "stack")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_MS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_ID_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STACK_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    non_retryable: bool
    retry_after_ms: int
    subject: str
    subject_id: str
    metadata: _containers.ScalarMap[str, str]
    type: str
    stack: str
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., non_retryable: bool = ..., retry_after_ms: _Optional[int] = ..., subject: _Optional[str] = ..., subject_id: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., type: _Optional[str] = ..., stack: _Optional[str] = ...) -> None: ...

class WorkflowFailedEvent(_message.Message):
    __slots__ = ("failed_run_id", "namespace_id", "workflow_type", "task_queue", "error", "original_input", "attempts", "started_at", "failed_at", "event", "external_id", "original_input_metadata", "original_input_omitted", "status")
    class OriginalInputMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FAILED_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKFLOW_TYPE_FIELD_NUMBER: _ClassVar[int]
    TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_INPUT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FAILED_AT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_ID_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_INPUT_METADATA_FIELD_NUMBER: _ClassVar[int]
    ORIGINAL_INPUT_OMITTED_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    failed_run_id: str
    namespace_id: str
    workflow_type: str
    task_queue: str
    error: ErrorDetail
    original_input: bytes
    attempts: int
    started_at: _timestamp_pb2.Timestamp
    failed_at: _timestamp_pb2.Timestamp
    event: str
    external_id: str
    original_input_metadata: _containers.ScalarMap[str, str]
    original_input_omitted: bool
    status: str
    def __init__(self, failed_run_id: _Optional[str] = ..., namespace_id: _Optional[str] = ..., workflow_type: _Optional[str] = ..., task_queue: _Optional[str] = ..., error: _Optional[_Union[ErrorDetail, _Mapping]] = ..., original_input: _Optional[bytes] = ..., attempts: _Optional[int] = ..., started_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., failed_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., event: _Optional[str] = ..., external_id: _Optional[str] = ..., original_input_metadata: _Optional[_Mapping[str, str]] = ..., original_input_omitted: bool = ..., status: _Optional[str] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("maximum_attempts", "initial_interval_ms", "backoff_coefficient", "maximum_interval_ms", "non_retryable_errors", "jitter")
    MAXIMUM_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    INITIAL_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_COEFFICIENT_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    NON_RETRYABLE_ERRORS_FIELD_NUMBER: _ClassVar[int]
    JITTER_FIELD_NUMBER: _ClassVar[int]
    maximum_attempts: int
    initial_interval_ms: int
    backoff_coefficient: float
    maximum_interval_ms: int
    non_retryable_errors: _containers.RepeatedScalarFieldContainer[str]
    jitter: float
    def __init__(self, maximum_attempts: _Optional[int] = ..., initial_interval_ms: _Optional[int] = ..., backoff_coefficient: _Optional[float] = ..., maximum_interval_ms: _Optional[int] = ..., non_retryable_errors: _Optional[_Iterable[str]] = ..., jitter: _Optional[float] = ...) -> None: ...

class TimeoutConfig(_message.Message):
    __slots__ = ("start_to_close_timeout_ms", "heartbeat_timeout_ms", "execution_timeout_ms")
    START_TO_CLOSE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    start_to_close_timeout_ms: int
    heartbeat_timeout_ms: int
    execution_timeout_ms: int
    def __init__(self, start_to_close_timeout_ms: _Optional[int] = ..., heartbeat_timeout_ms: _Optional[int] = ..., execution_timeout_ms: _Optional[int] = ...) -> None: ...
