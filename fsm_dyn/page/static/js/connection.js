// WebSocket with reconnection at increasing intervals.

const SHORTEST = 250; // ms
const LONGEST = 8000;

export class Connection {
  constructor({ message, frame, state }) {
    this.emit = { message, frame, state };
    this.pause = SHORTEST;
    this.timer = null;
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.emit.state(this.lost ? "lost" : "connecting", 0);
    const address = new URL("live", location.href.replace(/^http/, "ws"));
    address.search = address.hash = "";
    const socket = (this.socket = new WebSocket(address));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.pause = SHORTEST;
      this.lost = false;
      this.emit.state("open", 0);
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.emit.message(JSON.parse(data));
      else this.emit.frame(new Float64Array(data));
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.lost = true;
      this.emit.state("lost", this.pause);
      this.timer = setTimeout(() => this.open(), this.pause);
      this.pause = Math.min(LONGEST, this.pause * 2);
    };
  }

  retry() {
    this.pause = SHORTEST;
    this.open();
  }

  send(command) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(command));
    return true;
  }
}
