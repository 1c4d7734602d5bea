import { IncomingMessage } from "node:http"
import { realtimePath } from "../realtime/RealtimePath.ts"

const requestsUpgrade = Symbol("requestsUpgrade")

/**
 * Node's request, except that only the handshake of a realtime socket is an upgrade. Node hands over the connection of
 * an upgrade to its handler, together with the request's body. Requests that offer another protocol are handled as if
 * they did not.
 */
export class IncomingRequest extends IncomingMessage {
  private [requestsUpgrade] = false
  get upgrade(): boolean {
    if (!this[requestsUpgrade] || this.method === "CONNECT") return this[requestsUpgrade]
    const isSocket = this.method === "GET" && this.url?.startsWith(realtimePath) === true
    return isSocket && /^websocket$/iu.test(this.headers.upgrade ?? "")
  }
  set upgrade(value: boolean) {
    this[requestsUpgrade] = value
  }
}
