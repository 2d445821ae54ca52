package model

// base is the common part of all models on a link. A hidden model keeps its data and sends no
// requests.
type base struct {
	// Changed is called on the UI goroutine after a change. Set it before Show; it may be nil.
	Changed func()

	link  *Link
	tasks *tasks
	leave func() // ends the subscription to the link
	shown bool
	err   error // of the latest load
}

// join returns the base of a model; heard is called with every change, shown or not.
func join(l *Link, heard func(Change)) base {
	return base{link: l, tasks: newTasks(l.tasks.ctx, l.tasks.post, l.tasks.now), leave: l.Subscribe(heard)}
}

// Close ends the model and waits for its calls.
func (b *base) Close() {
	b.leave()
	b.shown = false
	b.tasks.close()
}

func (b *base) change() {
	if b.Changed != nil {
		b.Changed()
	}
}

// failure returns why there is nothing to show: an error of the model's load, or of the connection.
func (b *base) failure(loaded bool) error {
	switch {
	case loaded:
		return nil
	case b.err != nil:
		return b.err
	case b.link.State().Down():
		return b.link.State().Err
	}
	return nil
}
