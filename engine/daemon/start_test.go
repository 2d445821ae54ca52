package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/kagzi/kagzi/engine"
)

func TestAServerInThisProcessThatIsInterruptedBeforeItServesIsAnError(t *testing.T) {
	t.Setenv("KAGZI_CONFIG", off)
	t.Setenv("KAGZI_DATA_DIR", filepath.Join(t.TempDir(), "data"))
	t.Setenv("KAGZI_LISTEN", "127.0.0.1:0")
	t.Setenv("KAGZI_HTTP", off)
	ctx, interrupt := context.WithCancel(t.Context())
	b := Backends{Open: func(ctx context.Context, _ string, _ engine.OpenOptions) (engine.Store, error) {
		interrupt()
		return nil, ctx.Err()
	}}
	s, err := Start(ctx, "v1.2.3", b)
	if s != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("Start = %v, %v, want no server and that it was interrupted", s, err)
	}
}
