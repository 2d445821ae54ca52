package web

import (
	kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"
	"github.com/kagzi/kagzi/tui/model"
	"github.com/kagzi/kagzi/tui/render"
)

// mostSDKs limits the workers that one page asks about: each costs a call.
const mostSDKs = 8

// workerName returns a worker with its language and the version of its SDK as raw text, like "worker-1
// (python 0.1.0)"; only its id if the worker does not say that or the role does not see workers.
func (p *page) workerName(id string) string {
	sdk, asked := p.sdks[id]
	if !asked && id != "" && p.monitors() && len(p.sdks) < mostSDKs {
		if answer, err := p.API.GetWorker(p.ctx, &kagziv1.GetWorkerRequest{WorkerId: id}); err == nil {
			sdk = render.SDK(answer.GetWorker())
		} // the page is worth more than this error
		if p.sdks == nil {
			p.sdks = map[string]string{}
		}
		p.sdks[id] = sdk
	}
	if sdk == "" {
		return id
	}
	return id + " (" + sdk + ")"
}

// workerOf returns the worker of the steps of a row; empty if there is none or not only one.
func (p *page) workerOf(group []model.Lane) string {
	id := group[0].Step.GetWorkerId()
	for i := range group {
		if group[i].Step.GetWorkerId() != id {
			return ""
		}
	}
	return p.workerName(id)
}
