/** A new tenant on a running server, made over HTTP by an operator and an owner. */
import type { Answer, RequestOptions, Spoke } from "./Spoke.ts"

export interface Entitlements {
  readonly publicApi: boolean
  readonly turns: number
  readonly ingestionJobs: number
  readonly sources: number
  readonly overageEnabled: boolean
}

export const generous: Entitlements = {
  publicApi: true,
  turns: 1_000_000,
  ingestionJobs: 1_000_000,
  sources: 1_000_000,
  overageEnabled: false
}

export interface Team {
  readonly tenantId: string
  readonly agentId: string
  /** A request of the signed-in owner. */
  readonly owner: (method: string, path: string, body?: unknown) => Promise<Answer>
  readonly agent: (name: string) => Promise<string>
  /** A new key of the team's agent, or of `agentId`. */
  readonly key: (options?: {
    readonly permissions?: ReadonlyArray<string>
    readonly allowedOrigins?: ReadonlyArray<string>
    readonly expiresAt?: string
    readonly agentId?: string
  }) => Promise<{ readonly id: string; readonly secret: string }>
  /** Sets the tenant's entitlements. Omitted ones are generous. */
  readonly entitle: (entitlements: Partial<Entitlements>) => Promise<Answer>
}

/** The data of a successful answer; throws for any other. */
const dataOf = ({ status, body }: Answer) => {
  if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.data
}

let teams = 0

export const makeTeam = async (spoke: Spoke): Promise<Team> => {
  const operator = { authorization: `Bearer ${spoke.operatorToken}` }
  const login = { email: `owner-${++teams}@example.com`, password: "correct horse battery" }
  const asOperator = (method: string, path: string, body: unknown) =>
    spoke.request(method, path, { key: null, headers: operator, body })
  const { tenant } = dataOf(
    await asOperator("POST", "/api/operator/tenants", { name: `Team ${teams}`, owner: login })
  )
  const csrf = { "x-spoke-csrf": "1" }
  const loggedIn = await spoke.request("POST", "/api/auth/login", { key: null, headers: csrf, body: login })
  dataOf(loggedIn)
  const headers = { ...csrf, cookie: loggedIn.headers.get("set-cookie")?.split(";")[0] ?? "" }
  const owner = (method: string, path: string, body?: unknown) => {
    const options: RequestOptions = { key: null, headers, ...(body === undefined ? {} : { body }) }
    return spoke.request(method, path, options)
  }
  const agent = async (name: string): Promise<string> =>
    dataOf(await owner("POST", "/api/agents", { name })).agent.id
  const agentId = await agent("Shop")
  return {
    tenantId: tenant.id,
    agentId,
    owner,
    agent,
    key: async ({ agentId: other = agentId, permissions = ["chat", "retrieve", "ingest"], ...rest } = {}) => {
      const made = await owner("POST", `/api/agents/${other}/keys`, { name: "Key", permissions, ...rest })
      const { key, secret } = dataOf(made)
      return { id: key.id, secret }
    },
    entitle: (entitlements) =>
      asOperator("PUT", `/api/operator/tenants/${tenant.id}/subscription`, {
        plan: "test",
        entitlements: { ...generous, ...entitlements }
      })
  }
}
