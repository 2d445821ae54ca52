package e2e

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/kagzi/kagzi/engine"
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// entropy makes decisions from bytes, so that a fuzzer that changes the bytes changes the decisions.
// When the bytes are used up, each decision is the first choice.
type entropy struct{ bytes []byte }

// n returns a number below most; most is at most 256.
func (l *entropy) n(most int) int {
	if len(l.bytes) == 0 {
		return 0
	}
	one := int(l.bytes[0]) % most
	l.bytes = l.bytes[1:]
	return one
}

// some returns at most that many raw bytes.
func (l *entropy) some(most int) []byte {
	taken := l.bytes[:min(l.n(most+1), len(l.bytes))]
	l.bytes = l.bytes[len(taken):]
	return slices.Clone(taken)
}

func pick[T any](l *entropy, from []T) T { return from[l.n(len(from))] }

// words returns texts that may matter: existing and missing names, edges of limits, and texts that
// other programs would interpret.
func words(at inputStage) []string {
	return []string{
		"", at.run, at.token, at.step, at.worker, at.schedule, nobody, "default", "spare", "input", "t", "first",
		"x", "s", "k",
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("b", 64), strings.Repeat("b", 63),
		strings.Repeat("é", 128), strings.Repeat("w", 70_000),
		"a\x00b", "\xff\xfe", "\xc0\x80", "\xed\xa0\x80", "\x1b]0;title\x07", "\x9b31m", "\u202egnp", "a\u200db",
		"line\nline", "\r", " ", "\t",
		"' or 1=1; drop table runs; --", `"; select 1; "`, "%' or '%'='", "@run_id", "$1", "?", "../../etc/passwd", "/",
		"%2e%2e%2f", "a/b:c.d_e-f",
		"@yearly", "@every 1s", "* * * * *", "*/0 * * * *", "0 0 30 2 *", "99999999999 * * * *",
		strings.Repeat("*,", 127) + "*", "1-5/2 0-23 * jan-dec mon",
		"UTC", "Asia/Kathmandu", "Nowhere/None", "Local", "../UTC", "__kagzi_failure_handler", "*",
		strings.Repeat("a*", 100), "AAAA", "AAECAwQFBgcICQ==", "====",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "-1", "1e309", "NaN", "true", "{}", `{"a":`,
		"kz_admin_", strings.Repeat("0", 32), strings.Repeat("f", 33),
	}
}

var (
	wholes = []int64{0, 1, -1, 2, 3, 7, 10, 63, 64, 255, 256, 999, 1000, 1001, 10_000, 10_001, 65_535, 65_536,
		math.MaxInt32, math.MinInt32,
		1 << 32, math.MaxInt64, math.MinInt64, 86_400, 315_360_000, 315_360_001, 315_576_000_000, 253_402_300_799,
		253_402_300_800, 1_795_000_000}
	fractions = []float64{0, 1, -1, 0.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Copysign(0, -1), 2, 1e9}
)

// forge makes the messages of a call from entropy. They refer to the fixture where they can.
type forge struct {
	*entropy
	at    inputStage
	words []string
}

// messages returns what is sent to a method: random bytes, or something that almost makes sense.
func (f *forge) messages(method protoreflect.MethodDescriptor) [][]byte {
	first := []proto.Message{goodRequests(f.at)[string(method.Name())]}
	switch method.Name() {
	case "Session":
		first[0] = &kagziv1.SessionRequest{Seq: 1,
			Operation: &kagziv1.SessionRequest_Hello{Hello: &kagziv1.RegisterRequest{WorkflowTypes: []string{"t"}}}}
	case "Backup":
		first[0] = &kagziv1.BackupRequest{}
	}
	how := f.n(8)
	f.aim(first[0])
	if how == 7 {
		return [][]byte{f.some(255)}
	}
	var all [][]byte
	for i := range 1 + f.n(4) {
		var raw []byte
		if i == 0 && how != 6 {
			raw, _ = proto.Marshal(first[0])
		}
		for range f.n(5) {
			raw = f.field(raw, method.Input(), 0)
		}
		if f.n(64) == 63 {
			raw = raw[:min(len(raw), f.n(256))]
		}
		all = append(all, raw)
		if !method.IsStreamingClient() {
			break
		}
	}
	return all
}

// aim makes a request refer to the fixture where the good requests of other tests name nothing in
// order to change nothing.
func (f *forge) aim(request proto.Message) {
	m := request.ProtoReflect()
	for name, id := range map[protoreflect.Name]string{
		"run_id": f.at.run, "schedule_id": f.at.schedule, "worker_id": f.at.worker, "step_id": f.at.step} {
		field := m.Descriptor().Fields().ByName(name)
		if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() {
			continue
		}
		if is := m.Get(field).String(); is == nobody || is == "nobody" {
			m.Set(field, protoreflect.ValueOfString(id))
		}
	}
}

// field adds a field to a message; a later copy of a field overrides an earlier one.
func (f *forge) field(raw []byte, m protoreflect.MessageDescriptor, deep int) []byte {
	switch f.n(48) {
	case 47:
		// endless nesting
		return append(raw, slices.Repeat(protowire.AppendTag(nil, 1000, protowire.StartGroupType), 20_000)...)
	case 46:
		// an unknown field
		return protowire.AppendVarint(protowire.AppendTag(raw, 1999, protowire.VarintType), 1)
	}
	fields := m.Fields()
	if fields.Len() == 0 {
		return raw
	}
	field := fields.Get(f.n(min(fields.Len(), 256)))
	repeat := 1
	if field.IsList() && f.n(16) == 15 {
		repeat = pick(f.entropy, []int{2, 32, 33, 1000, 1001, 20_000})
	}
	one := f.value(nil, field, deep)
	if f.n(48) == 47 {
		// another wire type
		one = protowire.AppendFixed32(protowire.AppendTag(nil, field.Number(), protowire.Fixed32Type), 7)
	}
	if len(one)*repeat > engine.MaxMessage {
		repeat = 1
	}
	return append(raw, slices.Repeat(one, repeat)...)
}

// value adds a field with its number.
func (f *forge) value(raw []byte, field protoreflect.FieldDescriptor, deep int) []byte {
	bytes := func(content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(raw, field.Number(), protowire.BytesType), content)
	}
	varint := func(v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(raw, field.Number(), protowire.VarintType), v)
	}
	switch field.Kind() {
	case protoreflect.StringKind:
		if f.n(8) == 7 {
			return bytes(f.some(40))
		}
		return bytes([]byte(pick(f.entropy, f.words)))
	case protoreflect.BytesKind:
		if f.n(32) == 31 {
			return bytes(make([]byte, pick(f.entropy, []int{engine.MaxPayload, engine.MaxPayload + 1})))
		}
		return bytes(f.some(64))
	case protoreflect.BoolKind:
		return varint(uint64(f.n(2)))
	case protoreflect.EnumKind:
		return varint(uint64(pick(f.entropy, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 9999, math.MaxInt32})))
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(protowire.AppendTag(raw, field.Number(), protowire.Fixed64Type),
			math.Float64bits(pick(f.entropy, fractions)))
	case protoreflect.MessageKind:
		var inner []byte
		if deep < 6 {
			for range f.n(4) {
				inner = f.field(inner, field.Message(), deep+1)
			}
		}
		return bytes(inner)
	}
	return varint(uint64(pick(f.entropy, wholes)))
}
