import { IncomingMessage } from "node:http"
import { realtimePath } from "../realtime/RealtimePath.ts"

const asksForUpgrade = Symbol("asksForUpgrade")

/**
 * Node's request, except that only the handshake of a realtime socket is an upgrade. Node hands over the connection of an
 * upgrade to its handler, together with the request's body. Requests that offer another protocol are handled as if they
 * did not.
 */
export class IncomingRequest extends IncomingMessage {
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
