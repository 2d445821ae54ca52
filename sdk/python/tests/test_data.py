"""Values and annotations, the codec, and the vectors that all SDKs share."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

import kagzi
from kagzi import _data, codec, errors
from kagzi._convert import check_name, clean_text, printable
from kagzi.testing import repository
from kagzi.v1 import common_pb2 as common


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Item:
    sku: str
    count: int = 1
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    name: str
    children: list[Tree] = dataclasses.field(default_factory=list)


class Address(TypedDict):
    street: str
    zip: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Model(pydantic.BaseModel):
    id: str
    items: list[Item]


class Packed(msgspec.Struct):
    id: str
    items: list[int]


@pytest.mark.parametrize(("value", "kind"), [
    (None, None), (True, bool), (5, int), (2.5, float), ("ü", str), (b"\x00\xff", bytes),
    ([1, 2], list[int]), ((1, "a"), tuple[int, str]), ((1, 2, 3), tuple[int, ...]), ({1, 2}, set[int]),
    ({"a": 1}, dict[str, int]), ({1: "a"}, dict[int, str]), (None, int | None), ("x", int | str),
    ("red", Literal["red"]),
    (Colour.BLUE, Colour), (Item("a", 2, ["t"]), Item), (Tree("r", [Tree("c")]), Tree), ({"street": "s"}, Address),
    (Point(1, 2.0), Point), (uuid.UUID(int=5), uuid.UUID), (Decimal("1.10"), Decimal),
    (datetime(2026, 11, 28, 12, tzinfo=UTC), datetime), (date(2026, 11, 28), date), (timedelta(seconds=5), timedelta),
    (Model(id="m", items=[Item("a")]), Model), (Packed("p", [1]), Packed), ([Model(id="m", items=[])], list[Model]),
    ([1, {"a": [None]}], Any), ([1], Sequence[int]),
], ids=str)
def test_a_value_comes_back_as_its_annotation_says(value, kind):
    back = _data.decode(_data.encode(value), kind)
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("data", "kind", "path", "text"), [
    ('{"items":[{"sku":"a"},{"sku":"b"},{"sku":5}],"id":"x"}', Model, "items[2].sku", "items[2].sku"),
    ('{"name":"r","children":[{"name":"c"},{"children":[]}]}', Tree, "children[1].name", "children[1].name: it is"),
    ('{"id":"p","items":[1,"x"]}', Packed, "items[1]", "items[1]"),
    ('{"street":5}', Address, "street", "street: want a text, got a number"),
    ('{"a":[1,true]}', dict[str, list[int]], "a[1]", "want a whole number, got true or false"),
    ('[1,"a"]', tuple[int, int], "[1]", "want a whole number, got a text"),
    ('"green"', Colour, "", "want one of 'red', 'blue'"),
    ('{"sku":"a","count":1.5}', Item, "count", "want a whole number"),
    ("null", Item, "", "want an object (Item), got null"),
    ("", Item, "", "want an object (Item), got null"),
    ("{", Item, "", "it is no JSON"),
    ('"x"', datetime, "", "want a time"),
    ('[{"id":"m"}]', list[Model], "[0].items", "[0].items: Field required"),
])
def test_what_does_not_fit_says_where(data, kind, path, text):
    with pytest.raises(kagzi.DecodeError) as e:
        _data.decode(data.encode(), kind)
    assert e.value.path == path
    assert text in str(e.value)


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": {1, object()}}, "\ud800"])
def test_what_has_no_json_form_is_refused(value):
    with pytest.raises((kagzi.DecodeError, UnicodeEncodeError)):
        _data.encode(value)


def test_a_payload_that_is_too_large_is_refused():
    with pytest.raises(kagzi.DecodeError, match="2097153|more than the limit of 2097152"):
        codec.pack(None, b"x" * (2 << 20), codec.PayloadInfo("step"))


ROOT = repository()
VECTORS = ROOT / "proto" / "vectors" if ROOT is not None else None


def vectors(name: str) -> Any:
    assert VECTORS is not None
    return json.loads((VECTORS / name).read_text("utf-8"))


@pytest.mark.skipif(VECTORS is None, reason="the vectors are in the repository")
class TestVectors:
    def test_codec(self):
        v = vectors("codec.json")
        for p in v["payloads"]:
            aes = kagzi.AESCodec({p["key_id"]: bytes.fromhex(p["key"])}, p["key_id"], context=p.get("context", ""))
            info = codec.PayloadInfo(p["kind"], *(p.get(k, "") for k in (
                "workflow_type", "external_id", "run_id", "start", "step")))
            got = aes.decode(kagzi.Payload(base64.b64decode(p["data"]), p["stored_metadata"]), info)
            assert (got.data.decode(), got.metadata) == (p["plain"], p["metadata"]), p["name"]
            assert aes._binding(p["stored_metadata"], info).hex() == p["associated_data"], p["name"]
            again = aes.encode(kagzi.Payload(got.data, got.metadata), info)
            assert again.metadata == p["stored_metadata"]
            assert aes.decode(again, info).data == got.data
            with pytest.raises(kagzi.DecodeError, match="cannot be decrypted"):
                aes.decode(again, dataclasses.replace(info, step=info.step + "x"))
        for s in v["starts"]:
            assert codec.start_digest(s.get("workflow_type", "order"), s.get("external_id", ""),
                                      s["input"].encode()) == s["start"]

    def test_names(self):
        v = vectors("names.json")
        for name in v["valid"]:
            check_name("step", name)
        for name in v["invalid"]:
            if name.startswith("kagzi:"):
                continue  # refused where the call is made: test_misuse
            with pytest.raises(kagzi.ConfigError):
                check_name("step", name)
        paths = [tuple(map(int, p.split("."))) if p else () for p in v["order"]]
        assert paths == sorted(paths)

    def test_payloads(self):
        v = vectors("payloads.json")
        seen = []
        for group in v["groups"]:
            values = [_data.decode(text.encode()) for text in group]
            assert all(one == values[0] for one in values), group
            seen.append(json.dumps(values[0], sort_keys=True))
        for text in v["empty"]:
            assert _data.decode(text.encode()) is None
        for text in v["invalid"]:
            with pytest.raises(kagzi.DecodeError):
                _data.decode(text.encode("utf-8", "surrogatepass"))

    def test_errors(self):
        v = vectors("errors.json")
        for c in v["codes"]:
            d = common.ErrorDetail(code=errors.code_number(c["code"]), non_retryable=c.get("non_retryable", False))
            assert errors.repeatable(d) == c["repeatable"], c
            assert errors.lease_gone(d) == c["ends_lease"], c
        for t in v["texts"]:
            text, cut = ("".join(s * n for s, n in t[key]) for key in ("text", "cut"))
            assert clean_text(text, t["limit"]) == cut


def test_texts_of_users_are_escaped():
    assert printable("a\x1b[31m\nb\u202eü") == "a\\x1b[31m\\nb\\u202eü"


@pytest.mark.parametrize(("error", "want"), [
    (ValueError("v"), {"message": "v"}),
    (kagzi.Failed("m", type="t", retry_after=1.5), {"message": "m", "type": "t", "retry_after_ms": 1500}),
    (kagzi.NonRetryable("m"), {"message": "m", "non_retryable": True}),
    (kagzi.TimedOut("s", "late", code="TIMEOUT"), {"message": "step s: late", "code": common.ERROR_CODE_TIMEOUT}),
    (SystemExit(3), {"message": "SystemExit: sys.exit(3)", "type": "panic"}),
])
def test_errors_as_they_are_recorded(error, want):
    d = errors.error_detail(error, stack=False)
    d.stack = ""
    assert d == common.ErrorDetail(**want)


def test_an_exception_whose_text_raises_is_recorded():
    class Bad(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert "cannot be had" in errors.error_detail(Bad()).message


def test_all_traffic_may_be_encrypted(kagzi_env):
    aes = kagzi.AESCodec({"k1": bytes(32)}, "k1")
    kagzi_env.worker(secret, codec=aes)
    client = kagzi.Client(profile="off", address=kagzi_env.server.address, namespace=kagzi_env.namespace, codec=aes)
    run = client.start(secret, "word", id="s-1")
    run.signal("more", "signal")
    assert run.result(20) == ["word", "step", "signal", True]
    assert b"word" not in run.get().wire.input.data
    assert all(s.output.metadata["encoding"] == "binary/encrypted" for s in run.steps() if s.HasField("output"))
    assert run.get().input(str) == "word"
    with pytest.raises(kagzi.DecodeError, match="no codec is set here"):
        kagzi_env.client.run(run.id, list[str]).result(5)
    client.close()


@kagzi.workflow
async def secret(word: str) -> list[object]:
    step = await kagzi.do("s", lambda: "step")
    more = await kagzi.wait_signal("more", str)
    return [word, step, more, kagzi.now().year > 2000]
