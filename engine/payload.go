package engine

// Payload is a user's data: kept and returned byte for byte, never looked into.
type Payload struct {
	Data     []byte
	Metadata map[string]string // hints for readers, such as content-type
}

// Size is what the payload counts against the limits: its data and its metadata, in bytes.
func (p Payload) Size() int {
	n := len(p.Data)
	for k, v := range p.Metadata {
		n += len(k) + len(v)
	}
	return n
}

// Equal says that both hold the same data and metadata; nil and empty are the same.
func (p Payload) Equal(q Payload) bool {
	if string(p.Data) != string(q.Data) || len(p.Metadata) != len(q.Metadata) {
		return false
	}
	for k, v := range p.Metadata {
		if w, ok := q.Metadata[k]; !ok || v != w {
			return false
		}
	}
	return true
}
