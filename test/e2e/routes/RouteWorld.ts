/** One resource of each kind, created over HTTP: real ids with known owners. */
import { softAuthenticator } from "../../SoftAuthenticator.ts"
import { type Spoke, until } from "../Spoke.ts"

/**
 * Kinds of ids, by their brands. `attachment` is the id of a stored file, `artifact` its content address, and `conversation`
 * the id of its conversation.
 */
export type Kind =
  | "AgentId"
  | "KeyId"
  | "TokenId"
  | "ToolId"
  | "TestCaseId"
  | "ExperimentId"
  | "CorrectionId"
  | "WebhookId"
  | "BudgetId"
  | "ChannelId"
  | "SourceId"
  | "DocumentId"
  | "ChunkId"
  | "IngestionJobId"
  | "ConversationId"
  | "MessageId"
  | "RunId"
  | "EndUserId"
  | "UserId"
  | "LabelId"
  | "SavedViewId"
  | "CannedReplyId"
  | "EntryId"
  | "SessionId"
  | "SignInId"
  | "PasskeyId"
  | "attachment"
  | "artifact"
  | "conversation"

export interface World {
  readonly tenantId: string
  readonly ids: Readonly<Record<Kind, string>>
  /** A word that is in every text and name of these resources, and nowhere else. */
  readonly mark: string
  /** A key of the agent, with every permission. */
  readonly key: string
  /** An access token of the tenant's owner, with every scope. */
  readonly token: string
}

export interface Sent {
  readonly body?: unknown
  readonly key?: string | undefined
  readonly cookie?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
}

export interface Received {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Sends one request. A form is sent as it is, every other body as JSON. */
export const ask = async (
  spoke: Spoke,
  method: string,
  path: string,
  { body, cookie, headers, key }: Sent = {}
): Promise<Received> => {
  const form = body instanceof FormData
  const response = await fetch(`${spoke.url}${path}`, {
    method,
    redirect: "manual",
    signal: AbortSignal.timeout(20_000),
    headers: {
      ...(key === undefined ? {} : { "x-api-key": key }),
      ...(cookie === undefined ? {} : { cookie }),
      ...(body === undefined || form ? {} : { "content-type": "application/json" }),
      ...headers
    },
    ...(body === undefined ? {} : { body: form ? body : JSON.stringify(body) })
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** The header of requests that no page of the dashboard sends. */
export const csrf = { "x-spoke-csrf": "1" }
export const password = "correct horse battery"

/** A successful answer and its data; throws for any other. */
const expectSuccess = async (received: Promise<Received>) => {
  const { headers, status, text } = await received
  if (status >= 300) throw new Error(`${status} ${text}`)
  return { data: text.startsWith("{") ? JSON.parse(text).data : null, headers, text }
}

export const signIn = async (spoke: Spoke, email: string, secret = password): Promise<string> => {
  const body = { email, password: secret }
  const loggedIn = await expectSuccess(ask(spoke, "POST", "/api/auth/login", { headers: csrf, body }))
  return loggedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
}

/** A tenant with a session of its owner. */
export const makeTenant = async (spoke: Spoke, name: string) => {
  const email = `${name}@example.com`
  const { data } = await expectSuccess(
    ask(spoke, "POST", "/api/operator/tenants", {
      headers: { authorization: `Bearer ${spoke.operatorToken}` },
      body: { name, owner: { email, password } }
    })
  )
  const tenantId: string = data.tenant.id
  return { tenantId, email, cookie: await signIn(spoke, email) }
}

export type Owner = Awaited<ReturnType<typeof makeTenant>>

/** A session of a new user of the tenant. */
export const makeUser = async (spoke: Spoke, { cookie }: Owner, email: string, role: string) => {
  const { data } = await expectSuccess(
    ask(spoke, "POST", "/api/users", { cookie, headers: csrf, body: { email, role, password } })
  )
  const id: string = data.user.id
  return { id, email, cookie: await signIn(spoke, email) }
}

/** The file of each world is made unique with its mark, because equal bytes are stored once. */
const picture = Uint8Array.from(Buffer.from("R0lGODlhAQABAAAAACwAAAAAAQABAAACAkQBADs=", "base64"))

const formOf = (name: string, file: Blob, title: string, fields: Readonly<Record<string, string>>) => {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.append(field, value)
  form.append(name, file, title)
  return form
}

let channels = 0

/** The id of a new passkey of the user of the session. */
const passkeyOf = async (spoke: Spoke, cookie: string, mark: string): Promise<string> => {
  const path = "/api/auth/passkeys"
  const begun = await expectSuccess(ask(spoke, "POST", `${path}/challenge`, { cookie, headers: csrf }))
  const [flow = ""] = begun.headers.get("set-cookie")?.match(/spoke_passkey=[^;]+/) ?? []
  const { credential } = softAuthenticator(spoke.url).create(begun.data.options)
  const body = { name: mark, credential }
  const made = await expectSuccess(
    ask(spoke, "POST", path, { cookie: `${cookie}; ${flow}`, headers: csrf, body })
  )
  return made.data.passkey.id
}

/** A new agent of the tenant with one resource of each kind. */
export const makeWorld = async (spoke: Spoke, owner: Owner, mark: string): Promise<World> => {
  const { cookie, tenantId } = owner
  const own = async (path: string, body: unknown, method = "POST") =>
    (await expectSuccess(ask(spoke, method, path, { cookie, headers: csrf, body }))).data
  const agentId: string = (await own("/api/agents", { name: mark, instructions: mark })).agent.id
  const made = await own(`/api/agents/${agentId}/keys`, { name: mark, permissions: ["*"] })
  const key: string = made.secret
  const byKey = (method: string, path: string, body?: unknown) =>
    expectSuccess(ask(spoke, method, path, { key, ...(body === undefined ? {} : { body }) }))

  const access = await own("/api/tokens", { name: mark, scopes: ["*"] })
  const token: string = access.secret

  const { tool } = await own(`/api/agents/${agentId}/tools`, {
    name: `order_${mark}`,
    description: mark,
    parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
    http: { method: "GET", url: "https://shop.example/orders/{number}" }
  })
  const testCase = await own(`/api/agents/${agentId}/cases`, { question: `What is ${mark}?`, note: mark })
  const { webhook } = await own("/api/webhook-endpoints", {
    url: `https://shop.example/${mark}`,
    events: ["source.failed"]
  })
  const { budget } = await own("/api/budgets", { agentId, period: "month", limitNanoUsd: 1_000_000_000_000 })
  const { channel } = await own(`/api/agents/${agentId}/channels`, {
    channel: "whatsapp",
    externalId: String(1_000 + ++channels),
    accessToken: `token-${mark}`
  })
  const uploaded = await byKey(
    "POST",
    "/v1/sources/upload",
    formOf("file", new Blob([`The secret of ${mark} is kept.`]), `${mark}.txt`, {})
  )
  const { ingestionJob, source } = uploaded.data
  await until(
    () => byKey("GET", `/v1/ingestion-jobs/${ingestionJob.id}`),
    ({ data }) => data.status === "SUCCEEDED"
  )

  const sourcePath = `/api/sources/${source.id}`
  const read = async (path: string) => (await expectSuccess(ask(spoke, "GET", path, { cookie }))).data
  const [document] = (await read(`${sourcePath}/documents`)).documents
  const [passage] = (await read(`${sourcePath}/documents/${document.id}`)).passages

  const { experiment } = await own(`/api/agents/${agentId}/experiments`, {})
  await own(`/api/agents/${agentId}/threshold`, { minPass: null, noRegression: false }, "PUT")
  await until(
    () => expectSuccess(ask(spoke, "GET", `/api/experiments/${experiment.id}`, { cookie })),
    ({ data }) => data.experiment.status === "complete"
  )

  const chat = { message: `Hello from ${mark}`, externalEndUserId: mark }
  const streamed = await byKey("POST", "/v1/chat/stream", chat)
  const runId = streamed.headers.get("x-run-id") ?? ""
  const [, conversationId = ""] = /"conversationId":"([^"]+)"/.exec(streamed.text) ?? []
  const [, endUserId = ""] = /"endUserId":"([^"]+)"/.exec(streamed.text) ?? []

  const { correction } = await own(`/api/agents/${agentId}/corrections`, {
    runIds: [runId],
    question: `What is ${mark}?`,
    answer: mark
  })

  const { sessionId } = (await byKey("POST", "/api/sdk/init", {})).data
  const sent = { message: `Look, ${mark}`, sessionId }
  await byKey(
    "POST",
    "/api/v1/chat/stream",
    formOf("files", new Blob([picture, mark], { type: "image/gif" }), `${mark}.gif`, sent)
  )
  const { messages } = (await byKey("GET", `/api/sdk/messages?sessionId=${sessionId}`)).data
  const { conversation } = (await byKey("GET", `/api/sdk/conversation?sessionId=${sessionId}`)).data
  const [file = ""] = /[^/]+(?=\?|$)/.exec(messages[0].media[0].url) ?? []
  const spare = await signIn(spoke, owner.email)
  const open = await expectSuccess(ask(spoke, "GET", "/api/auth/sessions", { cookie: spare }))
  const signInId: string = open.data.sessions.find(({ current }: { readonly current: boolean }) => current).id
  const { label } = await own("/api/inbox/labels", { name: mark, tone: "good" })
  const { view } = await own("/api/inbox/views", { name: mark, filter: { q: mark } })
  const { reply } = await own("/api/inbox/replies", { shortcut: mark, content: mark })
  const { entry } = await own(`/api/conversations/${conversationId}/notes`, { content: mark })
  const user = await makeUser(spoke, owner, `${mark}@people.example`, "viewer")
  const ids = {
    AgentId: agentId,
    KeyId: made.key.id,
    TokenId: access.token.id,
    ToolId: tool.id,
    TestCaseId: testCase.case.id,
    ExperimentId: experiment.id,
    CorrectionId: correction.id,
    WebhookId: webhook.id,
    BudgetId: budget.id,
    ChannelId: channel.id,
    SourceId: source.id,
    DocumentId: document.id,
    ChunkId: passage.id,
    IngestionJobId: ingestionJob.id,
    ConversationId: conversationId,
    MessageId: messages[1].id,
    RunId: runId,
    EndUserId: endUserId,
    UserId: user.id,
    LabelId: label.id,
    SavedViewId: view.id,
    CannedReplyId: reply.id,
    EntryId: entry.id,
    SessionId: sessionId,
    SignInId: signInId,
    PasskeyId: await passkeyOf(spoke, spare, mark),
    attachment: file,
    artifact: `sha256:${file}`,
    conversation: conversation.id
  }
  for (const [kind, id] of Object.entries(ids)) if (!id) throw new Error(`The agent has no ${kind}.`)
  return { tenantId, ids, mark, key, token }
}
