package kagzi

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// reasons put what gRPC says for want of a server's word into sentences that say what to do, by a sign in its message; what stands behind the
// sign is the reason. The first that fits counts.
var reasons = []struct {
	code       codes.Code
	sign       string
	says, next string
}{
	{codes.Unavailable, "Error while dialing: ", "no server answers: ", "; see that one runs there (kagzi server), or name another address"},
	{codes.Unavailable, "authentication handshake failed: ", "no encrypted connection to the server: ", "; see the TLS settings and the certificates of both sides"},
	{codes.Unavailable, "use of closed network connection", "what listens there does not answer: the server stands still, or it is none of Kagzi's", ""},
	{codes.Unavailable, "error reading server preface: ", "what answers there does not speak as a server of Kagzi without TLS does: ", "; if that lasts, see the address, and turn on TLS if it wants that"},
	{codes.Unavailable, "name resolver error: ", "the server's name leads nowhere: ", "; see the address"},
	{codes.Unavailable, "", "the server gave no answer: ", ""},
	{codes.Canceled, "the client connection is closing", "the client is closed", ""},
	{codes.ResourceExhausted, "trying to send message larger than max ", "the call has more bytes than a server takes: ", "; send less in one call"},
	{codes.Internal, "grpc: error while marshaling: ", "the call cannot be sent: ", "; names, ids and texts have to be UTF-8"},
	{codes.Unimplemented, "", "the server does not offer this: ", "; it may be older than this program"},
}

// plainMessage is the message of a status that no server has put into words.
func plainMessage(st *status.Status) string {
	for _, r := range reasons {
		if _, reason, found := strings.Cut(st.Message(), r.sign); found && r.code == st.Code() {
			return r.says + strings.TrimSuffix(strings.TrimPrefix(reason, `connection error: desc = "`), `"`) + r.next
		}
	}
	return st.Message()
}
