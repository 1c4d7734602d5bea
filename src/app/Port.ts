/** Checks the server's port before anything is created. */
import { createServer } from "node:http"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Settings } from "./config/Config.ts"

/** `variable` is the variable that configures the port. */
type Address = Pick<Settings, "host" | "port"> & { readonly variable?: string }

/** The server cannot listen on the address. The message says what to change. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", {
  message: Schema.String
}) {}

const reasonOf = (code: unknown, { host, port, variable = "PORT" }: Address): string => {
  if (code === "EADDRINUSE") {
    return `${host}:${port} is in use by another program. Choose another port with ${variable}.`
  }
  return code === "EACCES"
    ? `Listening on port ${port} is not allowed. Choose another with ${variable}.`
    : `${host} is not an address to listen on. Choose another with HOST.`
}

/** The error for an address that was free at the check but is in use now. */
export const portTaken = (address: Address) => new CannotListen({ message: reasonOf("EADDRINUSE", address) })

/** Listens for a moment to check the address. Returns the port: `address.port`, or a free one for 0. */
export const findPort = (address: Address) =>
  Effect.async<number, CannotListen>((resume) => {
    const probe = createServer()
    probe.once("error", (error) => {
      const message = reasonOf("code" in error ? error.code : undefined, address)
      resume(Effect.fail(new CannotListen({ message })))
    })
    probe.listen({ host: address.host, port: address.port }, () => {
      const bound = probe.address()
      const port = bound !== null && typeof bound === "object" ? bound.port : address.port
      probe.close(() => resume(Effect.succeed(port)))
    })
  })

/** {@link findPort} for the server's own port, which must differ from that of health and metrics. */
export const findPorts = (settings: Settings) =>
  settings.healthPort === settings.port
    ? new CannotListen({
        message: `PORT and SPOKE_HEALTH_PORT are both ${settings.port}. Choose another SPOKE_HEALTH_PORT, or leave it out: PORT has health and metrics, too.`
      })
    : findPort(settings)
