/** Loaded into a server (`NODE_OPTIONS=--import`): prints each request that reaches a listener of its HTTP server. */
import { Server } from "node:http"

const { on } = Server.prototype
Server.prototype.on = function (event, listener) {
  if (event !== "request") return on.call(this, event, listener)
  return on.call(this, event, function (request, response) {
    process.stderr.write(`framework: ${request.method} ${request.url}\n`)
    return listener.call(this, request, response)
  })
}
