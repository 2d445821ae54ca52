package tui

import "testing"

func TestWhyUnreachedAdvisesAServerThatIsAtTheAddress(t *testing.T) {
	const elsewhere = "check that a server runs there and is reachable from here, or use another --address"
	for address, want := range map[string]string{
		"":                        "start one with: kagzi server",
		"127.0.0.1:50051":         "start one with: kagzi server",
		"localhost:50051":         "start one with: kagzi server",
		"127.0.0.1:7000":          "start one with: kagzi server --listen 127.0.0.1:7000",
		"[::1]:50051":             "start one with: kagzi server --listen [::1]:50051",
		"kagzi.example.com:50051": elsewhere,
		"10.0.0.7:50051":          elsewhere,
		"unix:/run/kagzi.sock":    elsewhere, // on which no server listens
	} {
		why := WhyUnreached(address,
			`connection error: desc = "transport: Error while dialing: connect: connection refused"`)
		if why.Advice != want || !why.Absent || why.Reason != "" {
			t.Errorf("of %q: %+v, want the advice %q", address, why, want)
		}
	}
}
