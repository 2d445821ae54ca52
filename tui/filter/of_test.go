package filter

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/kagzi/kagzi/proto/query"
)

func TestOfARequestIsTheFilterThatMakesIt(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 123_000, time.UTC)
	for _, text := range []string{
		"", "status:failed,timed_out", "type:order,refund queue:orders tag.team=pay tag.a=b", "since:24h until:1h worker:w-1",
		`schedule:nightly parent:01a1f826-e120-7000-b216-8d698409e652`, `type:"it's \" odd"`, `search = "order-7"`,
	} {
		short, err := ParseShort(text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := short.Compile("shop", now)
		if err != nil {
			t.Fatal(err)
		}
		written := Of(want.Request)
		again, err := query.Runs.Parse(written, now.Add(time.Hour))
		if err != nil {
			t.Fatalf("%q: %q cannot be read: %v", text, written, err)
		}
		got := Compile(again, "shop")
		if !proto.Equal(got.Request, want.Request) {
			t.Errorf("%q is written as %q:\n%v\nwant\n%v", text, written, got.Request, want.Request)
		}
	}
}
