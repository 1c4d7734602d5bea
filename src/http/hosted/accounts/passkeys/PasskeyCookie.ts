/** Cookie `spoke_passkey`: binds a challenge to the browser that requested it. */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { isIP } from "node:net"
import type { PasskeySite } from "../../../../domain/accounts/Passkey.ts"
import { type FlowCookie, flowCookie } from "../SignOnCookie.ts"

export class PasskeyCookie extends Context.Tag("http/hosted/accounts/passkeys/PasskeyCookie")<
  PasskeyCookie,
  FlowCookie & {
    readonly site: PasskeySite
    /** False where browsers support no passkeys: for IP addresses, and without https except on localhost. */
    readonly isAvailable: boolean
  }
>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<PasskeyCookie> => {
  const { hostname, origin, protocol } = new URL(appUrl)
  const isName = isIP(hostname.replace(/^\[|\]$/gu, "")) === 0
  return Layer.succeed(PasskeyCookie, {
    ...flowCookie(appUrl, { name: "spoke_passkey", path: "/api/auth", sameSite: "strict" }),
    site: { origin, rpId: hostname },
    isAvailable: isName && (protocol === "https:" || /(?:^|\.)localhost$/u.test(hostname))
  })
}
