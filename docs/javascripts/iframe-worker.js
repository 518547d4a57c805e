// A worker in a hidden frame, for pages opened as files: browsers start no worker of a file, and the search is one.
// The theme's search looks for ``IFrameWorker`` in the window of its frame's parent.

class IFrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = Object.assign(document.createElement("iframe"), { hidden: true });
    document.body.append(this.frame);
    const inside = this.frame.contentWindow;
    inside.document.open();
    inside.document.write("<!doctype html><body></body>");
    inside.document.close();
    inside.postMessage = (data) => {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    };
    const load = (source) => new Promise((loaded, failed) => {
      const script = Object.assign(inside.document.createElement("script"), { src: source, onload: loaded, onerror: failed });
      inside.document.body.append(script);
    });
    inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
    this.ready = load(new URL(url, document.baseURI).href);
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") Object.assign(window, { IFrameWorker, Worker: IFrameWorker });
