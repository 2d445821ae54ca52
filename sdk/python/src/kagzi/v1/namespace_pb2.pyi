from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from kagzi.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Namespace(_message.Message):
    __slots__ = ("id", "namespace", "display_name", "description", "enabled", "created_at", "updated_at", "retention", "keep", "failure_task_queue")
    class KeepEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _duration_pb2.Duration
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    id: str
    namespace: str
    display_name: str
    description: str
    enabled: bool
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    retention: _duration_pb2.Duration
    keep: _containers.MessageMap[str, _duration_pb2.Duration]
    failure_task_queue: str
    def __init__(self, id: _Optional[str] = ..., namespace: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., enabled: bool = ..., created_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[_timestamp_pb2.Timestamp, _Mapping]] = ..., retention: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., keep: _Optional[_Mapping[str, _duration_pb2.Duration]] = ..., failure_task_queue: _Optional[str] = ...) -> None: ...

class Keep(_message.Message):
    __slots__ = ("keep",)
    class KeepEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _duration_pb2.Duration
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    KEEP_FIELD_NUMBER: _ClassVar[int]
    keep: _containers.MessageMap[str, _duration_pb2.Duration]
    def __init__(self, keep: _Optional[_Mapping[str, _duration_pb2.Duration]] = ...) -> None: ...

class CreateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "display_name", "description", "retention", "keep", "failure_task_queue")
    class KeepEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _duration_pb2.Duration
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ...) -> None: ...
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    display_name: str
    description: str
    retention: _duration_pb2.Duration
    keep: _containers.MessageMap[str, _duration_pb2.Duration]
    failure_task_queue: str
    def __init__(self, namespace: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., retention: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., keep: _Optional[_Mapping[str, _duration_pb2.Duration]] = ..., failure_task_queue: _Optional[str] = ...) -> None: ...

class CreateNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class GetNamespaceRequest(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    def __init__(self, namespace: _Optional[str] = ...) -> None: ...

class GetNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class ListNamespacesRequest(_message.Message):
    __slots__ = ("page", "query")
    PAGE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    page: _common_pb2.PageRequest
    query: str
    def __init__(self, page: _Optional[_Union[_common_pb2.PageRequest, _Mapping]] = ..., query: _Optional[str] = ...) -> None: ...

class ListNamespacesResponse(_message.Message):
    __slots__ = ("namespaces", "page")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[Namespace]
    page: _common_pb2.PageInfo
    def __init__(self, namespaces: _Optional[_Iterable[_Union[Namespace, _Mapping]]] = ..., page: _Optional[_Union[_common_pb2.PageInfo, _Mapping]] = ...) -> None: ...

class UpdateNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "display_name", "description", "retention", "keep", "failure_task_queue", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    FAILURE_TASK_QUEUE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    display_name: str
    description: str
    retention: _duration_pb2.Duration
    keep: Keep
    failure_task_queue: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., display_name: _Optional[str] = ..., description: _Optional[str] = ..., retention: _Optional[_Union[_duration_pb2.Duration, _Mapping]] = ..., keep: _Optional[_Union[Keep, _Mapping]] = ..., failure_task_queue: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class UpdateNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class EnableNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EnableNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class DisableNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class DisableNamespaceResponse(_message.Message):
    __slots__ = ("namespace",)
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    namespace: Namespace
    def __init__(self, namespace: _Optional[_Union[Namespace, _Mapping]] = ...) -> None: ...

class DeleteNamespaceRequest(_message.Message):
    __slots__ = ("namespace", "force", "reason", "again")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    AGAIN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    force: bool
    reason: str
    again: bool
    def __init__(self, namespace: _Optional[str] = ..., force: bool = ..., reason: _Optional[str] = ..., again: bool = ...) -> None: ...

class DeleteNamespaceResponse(_message.Message):
    __slots__ = ("deleted", "removed")
    DELETED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    removed: NamespaceContents
    def __init__(self, deleted: bool = ..., removed: _Optional[_Union[NamespaceContents, _Mapping]] = ...) -> None: ...

class NamespaceContents(_message.Message):
    __slots__ = ("runs", "schedules", "workers", "keys", "hooks")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    runs: int
    schedules: int
    workers: int
    keys: int
    hooks: int
    def __init__(self, runs: _Optional[int] = ..., schedules: _Optional[int] = ..., workers: _Optional[int] = ..., keys: _Optional[int] = ..., hooks: _Optional[int] = ...) -> None: ...
