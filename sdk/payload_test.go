package kagzi

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

type label string

func TestUnchangedByJSON(t *testing.T) {
	t.Run("what is not read back is what would be read back", func(t *testing.T) {
		values := []any{
			"", "plain", "<&>\u2028\x00\"\\", "\U0001f600", true, false, int8(math.MinInt8), int64(math.MinInt64),
			uint64(math.MaxUint64), 1<<53 + 1,
			math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, float32(0.1),
			float32(math.MaxFloat32), float32(math.SmallestNonzeroFloat32),
		}
		for _, v := range values {
			p := reflect.New(reflect.TypeOf(v))
			p.Elem().Set(reflect.ValueOf(v))
			if !unchangedByJSON(p.Interface()) {
				t.Errorf("%T %v is read back", v, v)
			}
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(v))
			if err := json.Unmarshal(data, back.Interface()); err != nil {
				t.Fatal(err)
			}
			if got := back.Elem().Interface(); got != v || math.Signbit(asFloat(got)) != math.Signbit(asFloat(v)) {
				t.Errorf("%T %v is read back as %v", v, v, got)
			}
		}
	})
	t.Run("what JSON may change is read back", func(t *testing.T) {
		for _, p := range []any{
			new("\xff"), new("\xed\xa0\x80"), new(label("x")), &[]byte{'x'}, new([]string), &map[string]int{},
			&struct{ a int }{1}, new(new(int)), new(any(1)), new(any),
		} {
			if unchangedByJSON(p) {
				t.Errorf("%T %v is not read back", p, reflect.ValueOf(p).Elem())
			}
		}
	})
}

func asFloat(v any) float64 {
	f, _ := v.(float64)
	return f
}

func TestLargePayloadsAreLogged(t *testing.T) {
	for _, size := range []int{largePayload, largePayload + 1} {
		value := strings.Repeat("x", size-len(`""`))
		var want []string
		warned := func(what string) {
			if size > largePayload {
				want = append(want, "level=WARN msg=\"large "+what+"\"")
			}
		}
		withFake(t, func(t *testing.T, f *fake) {
			var log bytes.Buffer
			w := testWorker(f)
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
				if _, err := Step(ctx, "s", constant(value)); err != nil {
					return "", err
				}
				_, err := StartChild[int](ctx, "c", "other", value, ChildOptions{})
				return value, err
			})
			running(t, w)
			f.start("r", "w", "{}")
			f.await(t, "r")
			warned("step result")
			warned("input")
			warned("output")
			equal(t, warnings(&log), want)
		})
		want = nil
		var log bytes.Buffer
		d := newFakeServer(t)
		c := d.client(t)
		c.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		_, _ = Start(t.Context(), c, "w", value, StartOptions{})
		_, _ = CreateSchedule(t.Context(), c, "w", "@daily", value, ScheduleOptions{})
		_ = Signal(t.Context(), c.Run("r"), "go", value, SignalOptions{})
		_, _ = c.Schedule("s").Update(t.Context(), ScheduleUpdate{Input: InputOf(value)})
		_ = OverrideStep(t.Context(), c.Run("r"), "s", value, "why")
		for _, what := range []string{"input", "input", "signal", "input", "step result"} {
			warned(what)
		}
		equal(t, warnings(&log), want)
	}
}

// warnings returns the level and message of each warning in a log.
func warnings(log *bytes.Buffer) (list []string) {
	for line := range strings.Lines(log.String()) {
		if at := strings.Index(line, "level=WARN"); at >= 0 {
			text, _, _ := strings.Cut(line[at:], "\" ")
			list = append(list, text+"\"")
		}
	}
	return list
}

func TestAnEncodedPayloadWithoutACodecIsExplained(t *testing.T) {
	p := &kagziv1.Payload{Data: []byte("\x01\x02"), Metadata: map[string]string{"encoding": "binary/encrypted"}}
	_, err := decode[string](nil, p, PayloadInfo{})
	if want := `cannot be read as string: it is encoded as "binary/encrypted", and no Codec is set here`; err == nil ||
		err.Error() != want || !errors.As(err, new(nonRetryable)) {
		t.Errorf("err = %v, want %s", err, want)
	}
	p.Data = []byte(`"plain after all"`)
	if v, err := decode[string](nil, p, PayloadInfo{}); err != nil || *v != "plain after all" {
		t.Errorf("JSON under the name of an encoding: %v, %v", v, err)
	}
}

// deafCodec fails to decode anything.
type deafCodec struct{ err error }

func (deafCodec) Encode(p Payload, _ PayloadInfo) (Payload, error) { return p, nil }
func (c deafCodec) Decode(Payload, PayloadInfo) (Payload, error)   { return Payload{}, c.err }

func TestOnlyANonRetryableCodecErrorFailsARunForGood(t *testing.T) {
	for _, final := range []bool{false, true} {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			w.options.Codec = deafCodec{errors.New("no key yet")}
			if final {
				w.options.Codec = deafCodec{NonRetryable(errors.New("no such key"))}
			}
			Handle(w, "w", func(ctx Context, in int) (int, error) { return in, nil })
			running(t, w)
			f.start("r", "w", "1")
			d := f.await(t, "r").Error
			if want := "input of workflow type w: codec: no "; !strings.HasPrefix(d.GetMessage(), want) {
				t.Errorf("error %q, want %q at its beginning", d.GetMessage(), want)
			}
			equal(t, d.GetNonRetryable(), final)
		})
	}
}
