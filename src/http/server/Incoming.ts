import { IncomingMessage } from "node:http"
import { realtimePath } from "../realtime/RealtimePath.ts"

const asksForUpgrade = Symbol("asksForUpgrade")

/**
 * As Node's, but only the handshake of a realtime socket is an upgrade. Node gives away the connection of an upgrade with
 * the body of the request. A request that offers another protocol is answered as if it did not.
 */
export class Incoming extends IncomingMessage {
  private [asksForUpgrade] = false
  get upgrade(): boolean {
    if (!this[asksForUpgrade] || this.method === "CONNECT") return this[asksForUpgrade]
    const isSocket = this.method === "GET" && this.url?.startsWith(realtimePath) === true
    return isSocket && /^websocket$/iu.test(this.headers.upgrade ?? "")
  }
  set upgrade(asked: boolean) {
    this[asksForUpgrade] = asked
  }
}
