package widget_test

import (
	"math"
	"strings"
	"testing"

	"github.com/kagzi/kagzi/tui/render"
	"github.com/kagzi/kagzi/tui/widget"
	"github.com/kagzi/kagzi/tui/widget/widgettest"
)

func spark(values ...float64) func(widget.Canvas) {
	return func(c widget.Canvas) { widget.Spark(c, values, c.Theme.Style(render.Good)) }
}

func TestSpark(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []float64
		w, h   int
		want   string
	}{
		{"nothing", nil, 4, 1, "\n"},
		{"the newest are on the right", []float64{1, 8}, 4, 1, "  ▁█\n"},
		{"as high as the largest allows", []float64{0, 50, 100}, 3, 1, "▁▄█\n"},
		{"over two rows", []float64{25, 50, 75, 100}, 4, 2, "  ▄█\n▄███\n"},
		{"a little is seen", []float64{1, 10_000}, 2, 1, "▁█\n"},
		{"a spike is not lost among many", []float64{0, 0, 9, 0.1, 0, 0, 1, 0}, 4, 1, "▁█▁▁\n"},
		{"what is no number is nothing", []float64{math.NaN(), math.Inf(1), -5, 2}, 4, 1, "▁▁▁█\n"},
		{"all nothing", []float64{0, 0}, 2, 1, "▁▁\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := widgettest.Draw(t, spark(test.values...), test.w, test.h, plain()); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
	if got := widgettest.Draw(t, spark(0, 1, 2, 3, 4, 5, 6), 7, 1, ascii()); got != "__.-=*#\n" {
		t.Errorf("in letters it is %q", got)
	}
	widgettest.Draw(t, spark(1, 2), 0, 0, plain())
}

func TestSplitBar_of_one_value(t *testing.T) {
	for _, test := range []struct {
		name        string
		value, most float64
		want        string
	}{
		{"empty", 0, 10, "········"}, {"full", 10, 10, "████████"}, {"half", 5, 10, "████····"},
		{"to an eighth", 1, 64, "▏·······"},
		{"a little is seen", 0.001, 1000, "▏·······"}, {"more than there is", 50, 10, "████████"},
		{"of nothing", 5, 0, "········"}, {"below nothing", -1, 10, "········"},
		{"no number", math.NaN(), 10, "········"}, {"of no number", 1, math.NaN(), "········"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := widgettest.Draw(t, func(c widget.Canvas) {
				widget.SplitBar(c, []widget.Share{{Value: test.value, Style: c.Theme.Style(render.Good)}}, test.most)
			}, 8, 1, plain())
			if strings.TrimRight(got, "\n") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSplitBar(t *testing.T) {
	draw := func(c widget.Canvas) {
		widget.SplitBar(c, []widget.Share{{Value: 2, Style: c.Theme.Style(render.Good)},
			{Value: 0.01, Style: c.Theme.Style(render.Bad)}, {Value: 3.3, Style: c.Theme.Style(render.Busy)}}, 8)
	}
	widgettest.Golden(t, "splitbar", widgettest.DrawStyles(t, draw, 16, 1, plain())+
		widgettest.Draw(t, draw, 16, 1, ascii()))
	widgettest.Draw(t, draw, 0, 0, plain())
	widgettest.Draw(t, draw, 1, 1, plain())
}
