package kagzi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestARunFailsWithTheCodeOfTheReturnedStepError(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(error) error
		want ErrorCode
	}{
		"as it is":          {func(err error) error { return err }, CodeTimeout},
		"wrapped":           {func(err error) error { return fmt.Errorf("no answer: %w", err) }, CodeTimeout},
		"beside another":    {func(err error) error { return errors.Join(errors.New("closed"), err) }, CodeTimeout},
		"as its text alone": {func(err error) error { return errors.New(err.Error()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fake) {
				w := testWorker(f)
				Handle(w, "w", func(ctx Context, _ struct{}) (int, error) {
					_, err := Step(ctx, "slow", func(ctx context.Context) (int, error) {
						return 0, wait(ctx, time.Hour)
					}, Retry{Attempts: 1}, Timeout(time.Second))
					return 0, c.end(err)
				})
				running(t, w)
				f.start("r", "w", "")
				equal(t, errorCode(f.await(t, "r").Error.GetCode()), c.want)
			})
		})
	}
	// the server alone says so
	equal(t, errorDetail(&StepError{Step: "child", Code: CodeCrashed}).GetCode().String(), "ERROR_CODE_UNSPECIFIED")
}
