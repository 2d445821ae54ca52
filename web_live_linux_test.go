package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
)

// TestPageShowsChangesWithoutAReload has the page show a change within 250 ms, without a timer in
// between. This machine may do other things meanwhile, so several changes are tried, and one of them has
// to be seen in time: what delays changes by design delays each of them.
func TestPageShowsChangesWithoutAReload(t *testing.T) {
	const most, tries = 250 * time.Millisecond, 20
	a := startAgents(t)
	p := profile(t, "http://"+a.http)
	for try := 1; ; try++ {
		run := a.begin(nil)
		p.open(runPage(run))
		p.until(`document.querySelector("#live").innerText === "live"`)
		value[bool](p, `(() => {
			window.same = true;
			window.timers = [];
			const later = window.setTimeout;
			window.setTimeout = (f, ms, ...rest) => { timers.push(ms); return later(f, ms, ...rest) };
			new MutationObserver(() => { window.seen ??= /cancelled/i.test(document.querySelector("#state").innerText) ? Date.now() : undefined })
				.observe(document.querySelector("#state"), {subtree: true, childList: true, attributes: true, characterData: true});
			return true;
		})()`)
		began := time.Now()
		a.cancel(run)
		p.until(`window.seen !== undefined`)
		if !value[bool](p, `window.same === true`) {
			t.Fatal("the page was loaded again")
		}
		took, timers := time.UnixMilli(value[int64](p, `window.seen`)).Sub(began), value[string](p, `window.timers.join()`)
		t.Logf("the change was seen after %s", took)
		if took <= most && timers == "" {
			return
		}
		if try == tries {
			t.Fatalf("none of %d changes was seen within %s and without a timer; the last one took %s, timers of %q ms",
				tries, most, took, timers)
		}
	}
}

// TestPageReadsAListAtMostOnceASecond counts by the clock of the page.
func TestPageReadsAListAtMostOnceASecond(t *testing.T) {
	a := startAgents(t)
	a.begin(nil)
	p := profile(t, "http://"+a.http)
	p.open("/n/default/runs")
	p.until(`document.querySelector("#live").innerText === "live"`)
	value[bool](p, `(() => {
		window.reads = [];
		const plain = window.fetch;
		window.fetch = (...all) => { reads.push(Date.now()); return plain(...all) };
		return true;
	})()`)
	for i := range 3 {
		for range 5 {
			a.begin(nil)
		}
		p.until(fmt.Sprintf(`reads.length > %d && !document.hidden`, i))
	}
	if least := value[int](p, `Math.min(...reads.slice(1).map((at, i) => at - reads[i]))`); least < 990 { // a timer may fire some milliseconds before its time
		t.Errorf("the list was read again after %d ms, want at least 1000", least)
	}
	p.until(`/^\d+\+? new: show$/.test(document.querySelector("#list .more").innerText)`)
	if rows := value[int](p, `document.querySelectorAll("table.runs tbody tr").length`); rows != 1 {
		t.Errorf("the list has %d rows before the new ones are asked for, want the one of before", rows)
	}
	p.click("#list .more")
	p.until(`document.querySelectorAll("table.runs tbody tr").length === 16`)
}

func TestPageIsLiveInEightTabs(t *testing.T) {
	a := startAgents(t)
	a.begin(nil)
	first := profile(t, "http://"+a.http)
	first.open("/n/default/runs")
	tabs := []*tab{first}
	for range 7 {
		p := newTab(t, first.ctx, first.site)
		p.open("/n/default/runs")
		tabs = append(tabs, p)
	}
	for _, p := range tabs {
		p.until(`document.querySelector("#live").innerText === "live"`)
	}
	a.begin(func(r *kagziv1.StartWorkflowRequest) { r.WorkflowType = "another" })
	for _, p := range tabs {
		p.until(`document.querySelector("#list .more") !== null`)
	}
	_, text := fetched(t, a.http, "/metrics")
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "kagzi_streams "); ok && strings.TrimSpace(n) != "1" {
			t.Errorf("the eight tabs have %s streams, want one", strings.TrimSpace(n))
		}
	}
}

// streamCounter notes the streams that a page opens.
const streamCounter = `(() => {
	const Plain = window.EventSource;
	window.streams = [];
	window.EventSource = class extends Plain { constructor(...all) { super(...all); window.streams.push(this) } };
})()`

// openStreams is the number of streams of a page.
const openStreams = `window.streams.filter(s => s.readyState !== EventSource.CLOSED).length`

func TestPageSharesOneStreamBetweenTwoNamespaces(t *testing.T) {
	a := startAgents(t)
	admin := a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN)
	if _, err := a.api.CreateNamespace(admin, &kagziv1.CreateNamespaceRequest{Namespace: "shop"}); err != nil {
		t.Fatal(err)
	}
	spaces := []string{"default", "shop"}
	start := func(space string) { a.begin(func(r *kagziv1.StartWorkflowRequest) { r.Namespace = space }) }
	start("default")
	start("shop")
	first := profile(t, "http://"+a.http)
	tabs := map[string][]*tab{}
	var all []*tab
	for i := range 8 {
		p := first
		if i > 0 {
			p = newTab(t, first.ctx, first.site)
		}
		_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: streamCounter})
		if err != nil {
			t.Fatal(err)
		}
		space := spaces[i%2]
		p.open("/n/" + space + "/runs")
		tabs[space], all = append(tabs[space], p), append(all, p)
	}
	leader := func(among []*tab) (found *tab) {
		t.Helper()
		for began := time.Now(); ; {
			open := 0
			for _, p := range among {
				if n := value[int](p, openStreams); n > 0 {
					open, found = open+n, p
				}
			}
			if open == 1 {
				return found
			}
			if time.Since(began) > patience {
				t.Fatalf("%d tabs of two namespaces have %d streams, want one", len(among), open)
			}
		}
	}
	hear := func(among []*tab, space string) {
		t.Helper()
		start(space)
		for _, p := range tabs[space] {
			p.until(`(document.querySelector("#list .more") || {}).innerText === "1 new: show"`)
			p.click("#list .more")
		}
		for _, p := range among {
			if more := value[bool](p, `document.querySelector("#list .more") !== null`); more {
				t.Errorf("a run of %s is news in %s", space, value[string](p, "location.pathname"))
			}
		}
	}
	for _, p := range all {
		p.until(`document.querySelector("#live").innerText === "live"`)
	}
	hear(all, "shop")
	hear(all, "default")
	gone := leader(all)
	gone.do("leave", chromedp.Navigate("about:blank"))
	rest := []*tab{}
	for space, list := range tabs {
		tabs[space] = nil
		for _, p := range list {
			if p != gone {
				tabs[space], rest = append(tabs[space], p), append(rest, p)
			}
		}
	}
	leader(rest)
	for _, p := range rest {
		p.until(`document.querySelector("#live").innerText === "live"`)
	}
	hear(rest, "default")
	hear(rest, "shop")
	if n := strings.Count(value[string](leader(rest), `window.streams.findLast(s => s.readyState === 1).url`), "ns="); n != 2 {
		t.Errorf("the stream carries %d namespaces, want 2", n)
	}
}

func TestPageSaysWhenItIsNotLiveAndKeepsFocusAndSelection(t *testing.T) {
	a, again := startSite(t)
	run := a.begin(nil)
	pin := func(pinned bool) {
		t.Helper()
		_, err := a.api.PinWorkflow(a.as(kagziv1.KeyRole_KEY_ROLE_ADMIN), &kagziv1.PinWorkflowRequest{RunId: run,
			Pinned: pinned})
		if err != nil {
			t.Fatal(err)
		}
	}
	state := func(pinned bool) string {
		return fmt.Sprintf(`document.querySelector("#state h1").innerText.toLowerCase().includes("pinned") === %t`, pinned)
	}
	p := profile(t, "http://"+a.http)
	_, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: streamCounter})
	if err != nil {
		t.Fatal(err)
	}
	p.open(runPage(run))
	p.until(`document.querySelector("#live").innerText === "live"`)
	value[bool](p, `(() => {
		window.focused = document.querySelector("#state a.button");
		focused.focus();
		getSelection().selectAllChildren(document.querySelector("#facts dd"));
		window.selected = getSelection().toString();
		return true;
	})()`)
	pin(true)
	p.until(state(true))
	if !value[bool](p, `document.activeElement === focused && selected !== "" && getSelection().toString() === selected`) {
		t.Error("an update has moved the focus or the selection")
	}
	p.click("#pause")
	p.until(`document.querySelector("#live").innerText === "paused" && ` + openStreams + ` === 0`)
	pin(false)
	p.click("#pause")
	p.until(state(false))
	p.until(`document.querySelector("#live").innerText === "live"`)
	// The page is then of another program than the server that comes back.
	value[bool](p, `document.documentElement.dataset.build = "before"; document.querySelector("#renewed").hidden`)
	p.expect("/live")
	a.stop()
	p.until(`/^not live since \d/.test(document.querySelector("#live").innerText)`)
	a = again()
	p.until(`document.querySelector("#live").innerText === "live" && !document.querySelector("#renewed").hidden`)
	pin(true)
	p.until(state(true))
}
