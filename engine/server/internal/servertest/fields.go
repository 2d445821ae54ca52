package servertest

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Fill sets every field of v to a non-zero value; n makes the values differ.
func Fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(1_700_000_000_000_000 + int64(*n)).UTC()))
		return
	case time.Duration:
		v.SetInt(int64(*n) * int64(time.Millisecond))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			Fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem(), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		Fill(key, n)
		Fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		Fill(v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			Fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("v%d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n%100 + 1))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	default:
		panic("fill does not know " + v.Type().String())
	}
}

// WantEachFieldSent sets one field of T after another and checks that the message changes. hidden
// says why some fields are not sent.
func WantEachFieldSent[T any](t *testing.T, hidden map[string]string, convert func(*T) proto.Message) {
	t.Helper()
	var zero T
	empty := convert(&zero)
	kind := reflect.TypeFor[T]()
	for i := range kind.NumField() {
		var one T
		n := i
		Fill(reflect.ValueOf(&one).Elem().Field(i), &n)
		name := kind.Field(i).Name
		_, isHidden := hidden[name]
		if told := !proto.Equal(convert(&one), empty); told == isHidden {
			t.Errorf("%s.%s: sent %v, want %v", kind, name, told, !isHidden)
		}
	}
	for name := range hidden {
		if _, ok := kind.FieldByName(name); !ok {
			t.Errorf("%s has no field %s any more", kind, name)
		}
	}
}

// fillMessage sets a field of a message, with everything in it, to a valid value that is not the
// default.
func fillMessage(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	scalar := func(f protoreflect.FieldDescriptor) protoreflect.Value {
		switch f.Kind() {
		case protoreflect.StringKind:
			if s, ok := Samples[f.Name()]; ok {
				return protoreflect.ValueOfString(s)
			}
			return protoreflect.ValueOfString("text")
		case protoreflect.BytesKind:
			return protoreflect.ValueOfBytes([]byte("bytes"))
		case protoreflect.BoolKind:
			return protoreflect.ValueOfBool(true)
		case protoreflect.Int32Kind:
			return protoreflect.ValueOfInt32(7)
		case protoreflect.Int64Kind:
			return protoreflect.ValueOfInt64(7)
		case protoreflect.DoubleKind:
			return protoreflect.ValueOfFloat64(1)
		case protoreflect.EnumKind:
			values := f.Enum().Values() // the last one, because the first ones may be defaults
			return protoreflect.ValueOfEnum(values.Get(values.Len() - 1).Number())
		}
		panic("fillMessage does not know " + f.FullName())
	}
	switch {
	case field.IsMap():
		m.Mutable(field).Map().Set(scalar(field.MapKey()).MapKey(), scalar(field.MapValue()))
	case field.IsList():
		list := m.Mutable(field).List()
		if field.Message() == nil {
			list.Append(scalar(field))
			return
		}
		element := list.AppendMutable().Message()
		FillAll(element)
	case field.Message() != nil:
		switch field.Message().FullName() {
		case "google.protobuf.Timestamp":
			m.Set(field, protoreflect.ValueOfMessage(timestamppb.New(time.Now().Add(time.Hour)).ProtoReflect()))
		case "google.protobuf.Duration":
			m.Set(field, protoreflect.ValueOfMessage(durationpb.New(time.Minute).ProtoReflect()))
		default:
			FillAll(m.Mutable(field).Message())
		}
	default:
		m.Set(field, scalar(field))
	}
}

// FillAll sets every field of a message as fillMessage does.
func FillAll(m protoreflect.Message) {
	for i := range m.Descriptor().Fields().Len() {
		fillMessage(m, m.Descriptor().Fields().Get(i))
	}
}

// WantEachFieldRead sets one field of a request after another and checks that the result differs
// from that of the plain request.
func WantEachFieldRead[M proto.Message](t *testing.T, plain M, needs map[protoreflect.Name]func(M),
	read func(M) (any, error)) {
	t.Helper()
	was, err := read(plain)
	if err != nil {
		t.Fatal(err)
	}
	fields := plain.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		one := proto.Clone(plain).(M)
		if prepare := needs[field.Name()]; prepare != nil {
			prepare(one)
			was, err := read(one)
			if err != nil {
				t.Errorf("%s: %v", field.Name(), err)
			}
			fillMessage(one.ProtoReflect(), field)
			if is, err := read(one); err != nil || reflect.DeepEqual(is, was) {
				t.Errorf("%s is not read (%v)", field.Name(), err)
			}
			continue
		}
		fillMessage(one.ProtoReflect(), field)
		if is, err := read(one); err != nil || reflect.DeepEqual(is, was) {
			t.Errorf("%s is not read (%v)", field.Name(), err)
		}
	}
}

// Samples holds a valid value for each field of a request that does not accept arbitrary text.
var Samples = map[protoreflect.Name]string{
	"parent_run_id": AnID, "parent_step_id": AnID, "run_id": AnID, "namespace": "other", "worker_id": "w-1",
}
