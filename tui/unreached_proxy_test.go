package tui

import (
	"net/url"
	"strings"
	"testing"
)

func TestWhyUnreached_names_the_proxy(t *testing.T) {
	defer func(before func(string) (*url.URL, error)) { environmentProxy = before }(environmentProxy)
	environmentProxy = func(address string) (*url.URL, error) {
		if strings.HasPrefix(address, "127.") {
			return nil, nil
		}
		return url.Parse("http://me:secret@proxy.corp:3128")
	}
	for _, message := range []string{
		`connection error: desc = "transport: Error while dialing: dial tcp 10.0.0.1:3128: connect: connection refused"`,
		`connection error: desc = "transport: Error while dialing: failed to do connect handshake, response: 403 Forbidden"`,
	} {
		got := WhyUnreached("kagzi.example:50051", message)
		if !strings.Contains(got.Text, "the proxy proxy.corp:3128") ||
			!strings.Contains(got.Advice, "NO_PROXY=kagzi.example") ||
			got.Reason == "" || got.Absent || strings.Contains(got.Text+got.Advice, "secret") {
			t.Errorf("%s: %+v", message, got)
		}
	}
	if got := WhyUnreached("127.0.0.1:50051", "connection refused"); strings.Contains(got.Text, "proxy") ||
		!got.Absent {
		t.Errorf("without a proxy: %+v", got)
	}
}
