package kagzi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

func TestBranches(t *testing.T) {
	t.Run("Map works on all items at once and keeps their order", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, in []int) ([]int, error) {
				return Map(ctx, in, func(ctx Context, n int) (int, error) {
					return Step(ctx, fmt.Sprintf("item-%d", n), func(ctx context.Context) (int, error) {
						return n * n, wait(ctx, time.Duration(10-n)*time.Second)
					})
				})
			})
			running(t, w)
			began := time.Now()
			f.start("r", "w", "[1,2,3,4]")
			equal(t, string(f.await(t, "r").Output.GetData()), "[1,4,9,16]")
			if took := time.Since(began); took > 10*time.Second {
				t.Fatalf("took %v, want the longest only", took)
			}
		})
	})

	t.Run("Map joins errors in item order and keeps the other results", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			var outs []int
			Handle(w, "w", func(ctx Context, in []int) ([]int, error) {
				var err error
				outs, err = Map(ctx, in, func(ctx Context, n int) (int, error) {
					return Step(ctx, fmt.Sprintf("item-%d", n), func(ctx context.Context) (int, error) {
						if n%2 == 0 {
							return 0, NonRetryable(errors.New("even"))
						}
						return n, nil
					})
				})
				return outs, err
			})
			running(t, w)
			f.start("r", "w", "[1,2,3,4]")
			equal(t, f.await(t, "r").Error.GetMessage(), "step item-2: even\nstep item-4: even")
			equal(t, outs, []int{1, 0, 3, 0})
		})
	})

	t.Run("SleepUntil ends in time even if the server was slow",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				began := time.Now()
				f.fault = func(r *kagziv1.SessionRequest) *kagziv1.ErrorDetail {
					if r.GetSleep() != nil && time.Since(began) < 50*time.Minute {
						return &kagziv1.ErrorDetail{Code: kagziv1.ErrorCode_ERROR_CODE_UNAVAILABLE}
					}
					return nil
				}
				Handle(w, "w", func(ctx Context, _ struct{}) (string, error) {
					slept := Go(ctx, func(ctx Context) (time.Duration, error) {
						SleepUntil(ctx, "until", began.Add(time.Hour))
						return Step(ctx, "look", func(context.Context) (time.Duration, error) {
							return time.Since(began), nil
						})
					})
					if _, err := Step(ctx, "work", func(ctx context.Context) (int, error) {
						return 0, wait(ctx, 3*time.Hour)
					}, Timeout(4*time.Hour)); err != nil {
						return "", err
					}
					took, err := slept.Wait(ctx)
					return took.Round(time.Second).String(), err
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, string(f.await(t, "r").Output.GetData()), `"1h0m0s"`)
			})
		})

	t.Run("the same names in one Map after another are numbered", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				for range 2 {
					if _, err := Map(ctx, []string{"a", "b"}, func(ctx Context, s string) (int, error) {
						return Step(ctx, s, constant(1))
					}); err != nil {
						return 0, err
					}
				}
				return Step(ctx, "a", constant(1))
			})
			running(t, w)
			f.start("r", "w", "")
			if r := f.await(t, "r"); r.Error != nil {
				t.Fatal(r.Error)
			}
			got := f.operations()[2:]
			slices.Sort(got)
			equal(t, got, []string{"complete a", "complete a:2", "complete a:3", "complete b", "complete b:2", "end r"})
		})
	})

	t.Run("a branch may reuse names of branches that were waited for",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					a := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "a", constant(1)) })
					behind := func(f *Future[int], names ...string) *Future[int] {
						return Go(ctx, func(ctx Context) (int, error) {
							if _, err := f.Wait(ctx); err != nil {
								return 0, err
							}
							for _, name := range names {
								if _, err := Step(ctx, name, constant(1)); err != nil {
									return 0, err
								}
							}
							return f.Wait(ctx) // a second Wait, which changes nothing
						})
					}
					b := behind(a, "a", "b")
					branch := behind(a, "aside")
					c := behind(b, "b", "a")
					if _, err := c.Wait(ctx); err != nil {
						return 0, err
					}
					if _, err := Step(ctx, "a", constant(1)); err != nil {
						return 0, err
					}
					return branch.Wait(ctx)
				})
				running(t, w)
				f.start("r", "w", "")
				if r := f.await(t, "r"); r.Error != nil {
					t.Fatal(r.Error)
				}
				got := f.operations()[2:]
				slices.Sort(got)
				equal(t, got, []string{"complete a", "complete a:2", "complete a:3", "complete a:4", "complete aside",
					"complete b", "complete b:2", "end r"})
			})
		})

	t.Run("nested branches retry, sleep and draw numbers on their own",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				var mu sync.Mutex
				drawn := map[string][]int{}
				Handle(w, "w", func(ctx Context, in []int) ([][]int, error) {
					outs, err := Map(ctx, in, func(ctx Context, i int) ([]int, error) {
						return Map(ctx, in, func(ctx Context, j int) (int, error) {
							name := fmt.Sprintf("item-%d-%d", i, j)
							n := Random(ctx).IntN(1 << 30)
							mu.Lock()
							drawn[name] = append(drawn[name], n)
							mu.Unlock()
							Sleep(ctx, "sleep-"+name, time.Duration(i)*time.Minute)
							return Step(ctx, name, func(ctx context.Context) (int, error) {
								if Attempt(ctx) < j {
									return 0, errors.New("again")
								}
								return 10*i + j, nil
							})
						})
					})
					if err != nil {
						return nil, err
					}
					_, err = Step(ctx, "item-1-1", constant(0))
					return outs, err
				})
				running(t, w)
				f.start("r", "w", "[1,2,3]")
				equal(t, string(f.await(t, "r").Output.GetData()), "[[11,12,13],[21,22,23],[31,32,33]]")
				if !slices.Contains(f.operations(), "complete item-1-1:2") {
					t.Errorf("operations %q, want a second item-1-1 in the end", f.operations())
				}
				others := map[int]bool{}
				for name, numbers := range drawn {
					if len(numbers) < 2 || len(slices.Compact(numbers)) != 1 || others[numbers[0]] {
						t.Errorf("%s drew %v in its activations, want one number of its own in each", name, numbers)
					}
					others[numbers[0]] = true
				}
			})
		})

	t.Run("a name used by the parent after the start is a clash",
		func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					used := make(chan struct{})
					other := Go(ctx, func(ctx Context) (int, error) {
						<-used
						return Step(ctx, "same", constant(1))
					})
					if _, err := Step(ctx, "same", constant(2)); err != nil {
						return 0, err
					}
					close(used)
					return other.Wait(ctx)
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, f.await(t, "r").Error.GetType(), "step_name_clash")
			})
		})
}

func TestWhatRunsBesideBranches(t *testing.T) {
	t.Run("plain goroutines may call Step beside a sleeping one", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				var group sync.WaitGroup
				group.Go(func() { Sleep(ctx, "sleep", time.Hour) })
				group.Go(func() {
					for i := range 5 {
						_, _ = Step(ctx, fmt.Sprintf("s%d", i), constant(i))
					}
				})
				group.Wait()
				return 1, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			// all five happened before the run was parked
			ops := f.operations()
			if i := slices.Index(ops, "release park=true"); i < slices.Index(ops, "complete s4") {
				t.Fatalf("parked too early: %q", ops)
			}
			equal(t, count(ops, "claim r"), 2)
		})
	})

	t.Run("a sleep beside a plain goroutine does not park at once", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				var group sync.WaitGroup
				group.Go(func() {
					_, _ = Step(ctx, "a", func(ctx context.Context) (int, error) {
						return 1, wait(ctx, 100*time.Millisecond)
					})
					_ = wait(ctx, parkSettle/2)
					_, _ = Step(ctx, "b", constant(1))
				})
				_, _ = Step(ctx, "m", func(ctx context.Context) (int, error) {
					return 1, wait(ctx, 99*time.Millisecond)
				})
				_ = wait(ctx, time.Millisecond+parkSettle/4)
				Sleep(ctx, "s", time.Hour)
				group.Wait()
				return 1, nil
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, f.operations(), []string{"hello ", "claim r", "complete m", "complete a", "sleep s hold=true",
				"complete b", "release park=true",
				"claim r", "end r"})
		})
	})

	t.Run("what is still under way when the workflow returns is dropped", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			ended := make(chan error, 1)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				Go(ctx, func(ctx Context) (int, error) {
					return Step(ctx, "slow", func(ctx context.Context) (int, error) {
						<-ctx.Done()
						ended <- ctx.Err()
						return 0, ctx.Err()
					})
				})
				return Step(ctx, "fast", func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Second) })
			})
			running(t, w)
			f.start("r", "w", "")
			f.await(t, "r")
			equal(t, errors.Is(<-ended, context.Canceled), true)
			equal(t, count(f.operations(), "failed slow hold=false"), 0)
		})
	})

	t.Run("branches that all wait for one another fail the run", func(t *testing.T) {
		for _, deadlock := range []func(ctx Context) (int, error){
			func(ctx Context) (int, error) {
				var itself *Future[int]
				made := make(chan struct{}) // a branch may get further than the one that started it
				itself = Go(ctx, func(ctx Context) (int, error) {
					Sleep(ctx, "s", time.Hour)
					<-made
					return itself.Wait(ctx)
				})
				close(made)
				return itself.Wait(ctx)
			},
			func(ctx Context) (int, error) {
				var one, other *Future[int]
				made := make(chan struct{})
				one = Go(ctx, func(ctx Context) (int, error) {
					_, _ = Step(ctx, "a", constant(1))
					<-made
					return other.Wait(ctx)
				})
				other = Go(ctx, func(ctx Context) (int, error) {
					_, _ = Step(ctx, "b", constant(1))
					return one.Wait(ctx)
				})
				close(made)
				_, _ = Step(ctx, "c", constant(1))
				return one.Wait(ctx)
			},
		} {
			d := failure(t, func(ctx Context, _ struct{}) (int, error) { return deadlock(ctx) })
			equal(t, []any{d.GetType(), d.GetNonRetryable()}, []any{"deadlock", true})
		}
	})

	t.Run(
		"a busy branch beside waiting plain goroutines: no deadlock", func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					open := make(chan struct{})
					inner := make(chan *Future[int], 1)
					outer := Go(ctx, func(ctx Context) (int, error) {
						go func() { _, _ = (<-inner).Wait(ctx) }()
						<-open // plain code; its other goroutine waits for the branch that waits for it
						return 7, nil
					})
					inner <- Go(ctx, func(ctx Context) (int, error) { return outer.Wait(ctx) })
					time.AfterFunc(time.Second, func() { close(open) })
					return outer.Wait(ctx)
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, string(f.await(t, "r").Output.GetData()), "7")
			})
		})

	t.Run("a future returns its result to every Wait", func(t *testing.T) {
		withFake(t, func(t *testing.T, f *fake) {
			w := testWorker(f)
			Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
				one := Go(ctx, func(ctx Context) (int, error) { return Step(ctx, "one", constant(1)) })
				outs, err := Map(ctx, []int{1, 2}, func(ctx Context, _ int) (int, error) { return one.Wait(ctx) })
				again, _ := one.Wait(ctx)
				return outs[0] + outs[1] + again, err
			})
			running(t, w)
			f.start("r", "w", "")
			equal(t, string(f.await(t, "r").Output.GetData()), "3")
		})
	})
}
