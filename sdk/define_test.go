package kagzi

import (
	"context"
	"reflect"
	"testing"
)

type defineIn struct{ N int }

type defineOut struct{ Twice int }

func TestDefine(t *testing.T) {
	double := Define[defineIn, defineOut]("double")
	outer := Define[defineIn, defineOut]("outer")

	t.Run("handles, starts and reads the type", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			double.Handle(w, func(_ Context, in defineIn) (defineOut, error) { return defineOut{2 * in.N}, nil })
			outer.Handle(w, func(ctx Context, in defineIn) (defineOut, error) {
				first, err := double.RunChild(ctx, "first", in, ChildOptions{})
				if err != nil {
					return first, err
				}
				second, err := double.Child(ctx, "second", defineIn{first.Twice}, ChildOptions{})
				if err != nil {
					return first, err
				}
				return second.Wait(ctx)
			})
			running(t, w)
			c := testClient(t, f)
			run, err := outer.Start(t.Context(), c, defineIn{3}, StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out, err := run.Result(t.Context())
			equal(t, err, nil)
			equal(t, out, defineOut{12})
			again, err := outer.Run(c, run.ID()).Result(t.Context())
			equal(t, err, nil)
			equal(t, again, out)
			equal(t, f.runs[run.ID()].WorkflowType, outer.Type())
		})
	})

	t.Run("takes no other types", func(t *testing.T) {
		in, out := reflect.TypeFor[defineIn](), reflect.TypeFor[defineOut]()
		equal(t, reflect.TypeOf(double.Start).In(2) == in, true)
		equal(t, reflect.TypeOf(double.StartMany).In(2).Elem() == in, true)
		equal(t, reflect.TypeOf(double.Child).In(2) == in, true)
		equal(t, reflect.TypeOf(double.RunChild).In(2) == in, true)
		equal(t, reflect.TypeOf(double.RunChild).Out(0) == out, true)
		equal(t, reflect.TypeOf(double.Handle).In(1) ==
			reflect.TypeFor[func(Context, defineIn) (defineOut, error)](), true)
		equal(t, reflect.TypeOf((*TypedRun[defineOut]).Result) ==
			reflect.TypeFor[func(*TypedRun[defineOut], context.Context) (defineOut, error)](), true)
	})

	t.Run("panics for an invalid name", func(t *testing.T) {
		defer func() {
			equal(t, recover(),
				any(`kagzi: Define: workflow type name "a b": only letters, digits and . _ : / - are allowed`))
		}()
		Define[int, int]("a b")
	})
}
