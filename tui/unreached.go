package tui

import "strings"

// Unreached is why a server was not reached, and what to do about it.
type Unreached struct {
	Text   string // "no server answers at 127.0.0.1:50051"
	Advice string // "start one with: kagzi server"
	Reason string // in the words of the library; empty when they say no more than Text
	Absent bool   // nothing is known to be there
}

// WhyUnreached reads the message of an Unavailable call that no server answered. An empty address
// is left out of the text.
func WhyUnreached(address, message string) Unreached {
	at := ""
	if address != "" {
		at = " at " + address
	}
	reason := connectionReason(message)
	for _, trouble := range connectionTroubles {
		if strings.Contains(reason, trouble.sign) {
			return Unreached{Text: strings.Replace(trouble.text, "{at}", at, 1), Advice: trouble.advice, Reason: reason}
		}
	}
	return Unreached{Text: "no server answers" + at, Advice: startAdvice(address), Reason: reason, Absent: true}
}

// startAdvice leads to a server at the address: one that is started somewhere else would leave the
// same command without an answer.
func startAdvice(address string) string {
	switch {
	case address == "", address == DefaultAddress, address == "localhost:50051":
		return "start one with: kagzi server"
	case loopback(address) && !strings.HasPrefix(address, "unix:"):
		return "start one with: kagzi server --listen " + address
	}
	return "see that one runs there and can be reached from here, or name another one with --address"
}

// connectionTroubles are what goes wrong while a connection is made, by a sign in the words of the
// library. The first that fits counts.
var connectionTroubles = []struct{ sign, text, advice string }{
	{"first record does not look like a TLS handshake", "the server{at} does not speak TLS",
		"leave out --tls and the like, or start the server with --tls-cert and --tls-key"},
	{"signed by unknown authority",
		"the certificate of the server{at} is signed by an authority that is not trusted here",
		"name the authority's file with --tls-ca ca.crt; `kagzi tls init` wrote one beside the server's certificate"},
	{"certificate has expired or is not yet valid", "the certificate of the server{at} is not valid at this time",
		"renew it on the server's machine, for one of `kagzi tls init` with: kagzi tls init --renew; and see that the clocks are right"},
	{"certificate is valid for", "the certificate of the server{at} is for another name",
		"use an address that the certificate names, or say which name to expect with --tls-server-name"},
	{"doesn't contain any IP SANs", "the certificate of the server{at} is for names, not for this address",
		"use a name that the certificate has, or say which to expect with --tls-server-name"},
	{"certificate is not valid for any names", "the certificate of the server{at} is for another name",
		"use an address that the certificate names, or say which name to expect with --tls-server-name"},
	{"tls: protocol version not supported", "the server{at} does not speak TLS 1.3",
		"it is no server of Kagzi, or something between cuts the connection"},
	{"remote error: tls:", "the server{at} does not accept the certificate of this client",
		"name one that its authority signed with --tls-client-cert and --tls-client-key, or none, and a key"},
	// we closed it
	{"use of closed network connection", "what listens{at} does not answer",
		"the server stands still or has too much to do, or it is none of Kagzi's"},
	{"error reading server preface", "the server{at} ended the connection at once; it may speak TLS",
		"encrypt the connection with --tls, or --tls-ca ca.crt for an authority of your own"},
}

// connectionReason is the part of gRPC's message that says more than that nobody was there.
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
