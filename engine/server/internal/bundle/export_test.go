package bundle

import (
	"archive/zip"
	"context"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kagzi/kagzi/engine"
	"github.com/kagzi/kagzi/engine/server/internal/servertest"
)

// wide is a store in which one run has many children, which have none.
type wide struct {
	*servertest.Books
	parent engine.ID
}

func (w wide) ListRuns(ctx context.Context, f engine.RunFilter, p engine.Page) ([]engine.Run, engine.PageInfo, error) {
	if f.ParentRunID != w.parent {
		return nil, engine.PageInfo{}, nil
	}
	return w.Books.ListRuns(ctx, f, p)
}

func TestAnExportThatIsTooWideIsRefusedBeforeItBegins(t *testing.T) {
	const most = engine.MaxPage + 20
	root := servertest.SomeID(1)
	b := &servertest.Books{}
	for i := range most {
		b.Runs = append(b.Runs, engine.Run{ID: servertest.SomeID(2 + i), ParentRunID: root})
	}
	slices.Reverse(b.Runs)
	b.Runs = append(b.Runs, engine.Run{ID: root})
	gather := func() (int, error) {
		x := export{ctx: context.Background(), store: wide{b, root}, namespace: "default", most: most}
		err := x.gather(root)
		return len(x.runs), err
	}
	if _, err := gather(); engine.KindOf(err) != engine.KindTooLarge {
		t.Errorf("a run with %d children: %v", most, err)
	}
	b.Runs = b.Runs[1:]
	if n, err := gather(); err != nil || n != most {
		t.Errorf("a run with %d children: %d runs, %v", most-1, n, err)
	}
}

// What retention deletes after an export has gathered its runs is not NOT_FOUND, which would be
// said of the run that was asked for.
func TestAnExportWhoseRunIsDeletedMeanwhileIsRetryable(t *testing.T) {
	b := servertest.Family()
	root, first := b.Runs[3].ID, b.Runs[2].ID
	x := export{ctx: t.Context(), store: b, namespace: "default", at: servertest.Began, most: maxCapsuleRuns,
		zip: zip.NewWriter(io.Discard)}
	if err := x.gather(root); err != nil {
		t.Fatal(err)
	}
	b.Runs = slices.DeleteFunc(b.Runs, func(r engine.Run) bool { return r.ID == first })
	if err := x.write("test"); engine.KindOf(err) != engine.KindUnavailable {
		t.Errorf("export: %v, want that it is to be tried again", err)
	}
}

func TestRedactLeavesSizeAndHash(t *testing.T) {
	p := servertest.TextPayload("four")
	redact(&p)
	want := engine.Payload{Metadata: map[string]string{
		"kagzi-redacted-bytes": "4", "kagzi-redacted-sha256": "04efaf080f5a3e74e1c29d1ca6a48569382cbbcd324e8d59d2b83ef21c039f00",
	}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("redacted:\n%s", diff)
	}
}
