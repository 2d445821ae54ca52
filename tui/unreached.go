package tui

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/kagzi/kagzi/sdk/profile"
)

// environmentProxy returns the proxy that gRPC uses for a host:port, by HTTPS_PROXY and NO_PROXY.
var environmentProxy = func(address string) (*url.URL, error) {
	return http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
}

// proxyTo returns the address of the proxy before a server, without a password; empty: none.
func proxyTo(address string) string {
	if address == "" || strings.HasPrefix(address, "unix:") {
		return ""
	}
	proxy, err := environmentProxy(address)
	if err != nil || proxy == nil {
		return ""
	}
	return proxy.Host
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// Unreached says why a server was not reached, and what to do about it.
type Unreached struct {
	Text   string // "no server answers at 127.0.0.1:50051"
	Advice string // "start one with: kagzi server"
	Reason string // the library's error; empty if it adds nothing to Text
	Absent bool   // probably no server runs there
}

// WhyUnreached interprets the message of an Unavailable error from a call that reached no server.
// An empty address is left out of the text.
func WhyUnreached(address, message string) Unreached {
	at := ""
	if address != "" {
		at = " at " + address
	}
	reason := connectionReason(message)
	if proxy := proxyTo(address); proxy != "" && !strings.Contains(reason, "certificate") {
		if reason == "" { // the proxy's address refused the connection
			reason = message
		}
		return Unreached{Text: "the proxy " + proxy + " made no connection to the server" + at, Reason: reason,
			Advice: "check the proxy, which HTTPS_PROXY names; to reach the server without it: NO_PROXY=" +
				hostOf(address)}
	}
	for _, trouble := range connectionTroubles {
		if strings.Contains(reason, trouble.sign) {
			return Unreached{Text: strings.Replace(trouble.text, "{at}", at, 1), Advice: trouble.advice, Reason: reason}
		}
	}
	return Unreached{Text: "no server answers" + at, Advice: startAdvice(address), Reason: reason, Absent: true}
}

// startAdvice returns how to start a server at the address: a server anywhere else would not help
// the same command.
func startAdvice(address string) string {
	switch {
	case address == "", address == DefaultAddress, address == "localhost:50051":
		return "start one with: kagzi server"
	case profile.Loopback(address) && !strings.HasPrefix(address, "unix:") && !strings.Contains(address, ","):
		return "start one with: kagzi server --listen " + address
	}
	return "check that a server runs there and is reachable from here, or use another --address"
}

// connectionTroubles lists connection problems by a part of the library's error. The first match
// counts.
var connectionTroubles = []struct{ sign, text, advice string }{
	{"first record does not look like a TLS handshake", "the server{at} does not speak TLS",
		"remove the --tls flags, or start the server with --tls-cert and --tls-key"},
	{"signed by unknown authority",
		"the certificate of the server{at} is signed by an authority that this machine does not trust",
		"pass the authority's file with --tls-ca ca.crt; `kagzi tls init` wrote it beside the server's certificate"},
	{"certificate has expired or is not yet valid", "the certificate of the server{at} is not valid at this time",
		"check both clocks; renew a certificate of `kagzi tls init` on the server's machine with: " +
			"kagzi tls init --renew"},
	{"certificate is valid for", "the certificate of the server{at} is for another name",
		"use an address in the certificate, or pass the expected name with --tls-server-name"},
	{"doesn't contain any IP SANs", "the certificate of the server{at} is for names, not for this address",
		"use a name in the certificate, or pass the expected name with --tls-server-name"},
	{"certificate is not valid for any names", "the certificate of the server{at} is for another name",
		"use an address in the certificate, or pass the expected name with --tls-server-name"},
	{"tls: protocol version not supported", "the server{at} does not speak TLS 1.3",
		"it may not be a Kagzi server, or a proxy interrupts the connection"},
	{"remote error: tls:", "the server{at} does not accept the certificate of this client",
		"pass one that its authority signed with --tls-client-cert and --tls-client-key, or use an API key instead"},
	// this client closed the connection
	{"use of closed network connection", "the process that listens{at} does not answer",
		"the server hangs or is overloaded, or it is not a Kagzi server"},
	{"error reading server preface", "the server{at} ended the connection at once; it may speak TLS",
		"encrypt the connection with --tls, or --tls-ca ca.crt for your own authority"},
}

// connectionReason returns gRPC's error without its wrapping; empty if it says only that nobody
// listens.
func connectionReason(message string) string {
	if strings.Contains(message, "connection refused") || strings.Contains(message, "actively refused it") {
		// the latter on Windows
		return ""
	}
	if _, reason, ok := strings.Cut(message, `desc = "`); ok {
		message = strings.TrimSuffix(reason, `"`)
	}
	return message
}
