package engine

import "maps"

// MetaChildRunID stands in what a CHILD step records of a run, the metadata of its output or of its failure: the id of the run that it is of.
const MetaChildRunID = "child_run_id"

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

// ChildOutput is what a CHILD step that started the run first records of the output of the run that ended: when first has continued as
// another one, whoever decodes the output has to know whose it is. A child's own metadata cannot say so in Kagzi's place.
func ChildOutput(output Payload, first, ended ID) Payload {
	if _, taken := output.Metadata[MetaChildRunID]; !taken && ended == first {
		return output
	}
	metadata := maps.Clone(output.Metadata) // the child's own payload has the other
	if metadata == nil {
		metadata = map[string]string{}
	}
	if delete(metadata, MetaChildRunID); ended != first {
		metadata[MetaChildRunID] = ended.String()
	}
	output.Metadata = metadata
	return output
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
