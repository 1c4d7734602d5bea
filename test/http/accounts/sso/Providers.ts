/** Identity providers for single sign-on on loopback: a real one, and a fake one whose answers a test sets. */
import * as Effect from "effect/Effect"
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto"
import * as Http from "node:http"
import Provider from "oidc-provider"

export const clientId = "spoke"
export const clientSecret = "a-client-secret-of-the-tests"

/** A server on loopback for as long as the scope is open. */
export const listen = (handler: Http.RequestListener) =>
  Effect.acquireRelease(
    Effect.async<{ readonly issuer: string; readonly server: Http.Server }>((resume) => {
      const server = Http.createServer(handler)
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ issuer: `http://127.0.0.1:${port}`, server }))
      })
    }),
    ({ server }) =>
      Effect.async<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )

export interface Person {
  readonly email?: string
  readonly email_verified?: boolean
  readonly groups?: ReadonlyArray<string>
}

const pair = () => generateKeyPairSync("rsa", { modulusLength: 2048 })

// A pair takes up to a second, so all providers share these.
const ownPair = pair()
const unpublishedPair = pair()

/** `oidc-provider`; `people` by their subject, which is also the login. */
export const realProvider = (redirectUri: string, people: Map<string, Person>) =>
  Effect.gen(function* () {
    let handle: Http.RequestListener = (_, response) => response.end()
    const { issuer } = yield* listen((request, response) => handle(request, response))
    const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" })
    const rsa = ownPair.privateKey.export({ format: "jwk" })
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: clientId,
          client_secret: clientSecret,
          redirect_uris: [redirectUri],
          id_token_signed_response_alg: "ES256"
        }
      ],
      jwks: {
        keys: [
          { ...key, use: "sig", alg: "ES256", kid: "ec" },
          { ...rsa, use: "sig", alg: "RS256", kid: "rsa" }
        ]
      },
      cookies: { keys: ["of the tests"] },
      scopes: ["openid", "email", "profile", "groups"],
      claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
      findAccount: (_: unknown, id: string) =>
        people.has(id) ? { accountId: id, claims: () => ({ sub: id, ...people.get(id) }) } : undefined
    })
    handle = provider.callback()
    return issuer
  })

type Jar = Map<string, string>

const step = async (jar: Jar, url: URL, form?: Readonly<Record<string, string>>) => {
  const response = await fetch(url, {
    redirect: "manual",
    headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") },
    ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) })
  })
  for (const line of response.headers.getSetCookie()) {
    const [name = "", value = ""] = (line.split(";")[0] ?? "").split(/=(.*)/s)
    if (value === "") jar.delete(name)
    else jar.set(name, value)
  }
  return { location: response.headers.get("location"), text: await response.text() }
}

/** Signs a person in at the real provider. Returns the address that the browser is redirected to. */
export const signInAt = async (page: string, login: string): Promise<URL> => {
  const jar: Jar = new Map()
  const origin = new URL(page).origin
  let url = new URL(page)
  for (let steps = 0; steps < 12; steps++) {
    const { location, text } = await step(jar, url)
    if (location === null) {
      const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1]
      if (prompt === undefined) throw new Error(`The provider shows no form: ${text.slice(0, 500)}`)
      const sent = await step(jar, url, { prompt, login, password: "any" })
      url = new URL(sent.location ?? "", origin)
    } else url = new URL(location, origin)
    if (url.origin !== origin) return url
  }
  throw new Error("The provider redirects endlessly.")
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")

/** A token with `claims`, signed with RS256 unless `alg` is "none". */
export const jwt = (
  claims: Readonly<Record<string, unknown>>,
  { alg = "RS256", key, kid }: { readonly alg?: string; readonly key: KeyObject; readonly kid: string }
) => {
  const text = `${encode({ alg, kid, typ: "JWT" })}.${encode(claims)}`
  const signature = alg === "none" ? "" : createSign("sha256").update(text).sign(key, "base64url")
  return `${text}.${signature}`
}

/** The answers of the fake provider. Tests change them. */
export interface Answers {
  /** Changes the claims of the id token. */
  claims: (claims: Record<string, unknown>) => Record<string, unknown>
  alg: string
  /** Whether it signs with a key that it does not publish. */
  forged: boolean
  discovery: (document: Record<string, unknown>) => Record<string, unknown>
  /** Runs before a token is returned. */
  beforeToken: () => Promise<unknown>
}

/** A provider whose tokens the test defines. It has no sign-in page, and each code works once. */
export const fakeProvider = Effect.gen(function* () {
  const state = { ...ownPair, kid: "first" }
  const answers: Answers = {
    claims: (claims) => claims,
    alg: "RS256",
    forged: false,
    discovery: (document) => document,
    beforeToken: () => Promise.resolve()
  }
  const codes = new Map<string, { readonly nonce: string; readonly challenge: string }>()
  const requests: Array<string> = []
  const { issuer } = yield* listen((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1")
    requests.push(`${request.method} ${url.pathname}`)
    const origin = `http://${request.headers.host}`
    const json = (body: unknown, status = 200) => {
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(body))
    }
    if (url.pathname === "/.well-known/openid-configuration") {
      return json(
        answers.discovery({
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          jwks_uri: `${origin}/keys`,
          response_types_supported: ["code"],
          id_token_signing_alg_values_supported: ["RS256", "none", "HS256"],
          authorization_response_iss_parameter_supported: true
        })
      )
    }
    if (url.pathname === "/keys") {
      return json({ keys: [{ ...state.publicKey.export({ format: "jwk" }), kid: state.kid, use: "sig" }] })
    }
    if (url.pathname !== "/token") return json({}, 404)
    let body = ""
    request.on("data", (chunk) => (body += String(chunk)))
    request.on("end", () => {
      const form = new URLSearchParams(body)
      const code = codes.get(form.get("code") ?? "")
      codes.delete(form.get("code") ?? "")
      const verifier = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url")
      if (code === undefined || verifier !== code.challenge) return json({ error: "invalid_grant" }, 400)
      const now = Math.floor(Date.now() / 1_000)
      const claims = answers.claims({
        iss: origin,
        sub: "subject-1",
        aud: clientId,
        iat: now,
        exp: now + 300,
        nonce: code.nonce,
        email: "ada@acme.example",
        email_verified: true
      })
      const key = answers.forged ? unpublishedPair.privateKey : state.privateKey
      const given = {
        access_token: "an-access-token-of-the-tests",
        token_type: "Bearer",
        id_token: jwt(claims, { alg: answers.alg, key, kid: state.kid })
      }
      void answers.beforeToken().then(() => json(given))
    })
    return undefined
  })
  /** The parameters with which the browser returns from the sign-in page. */
  const approve = (page: string): Record<string, string> => {
    const { searchParams } = new URL(page)
    const code = randomUUID()
    codes.set(code, {
      nonce: searchParams.get("nonce") ?? "",
      challenge: searchParams.get("code_challenge") ?? ""
    })
    return { code, state: searchParams.get("state") ?? "", iss: issuer }
  }
  const rotate = (kid: string) => Object.assign(state, pair(), { kid })
  return { issuer, answers, approve, rotate, requests }
})
