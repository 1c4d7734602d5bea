/** An agent with something of everything to improve: what went wrong, corrections, findings, and answers that a change affects. */
import { type Spoke, until } from "../e2e/Spoke.ts"

/** A request of the owner's: fails unless it is answered with success. */
export type Own = (
  method: string,
  path: string,
  body?: unknown
) => Promise<Awaited<ReturnType<Spoke["request"]>>["body"]>

export interface Museum {
  readonly agentId: string
  /** A draft whose preview is complete, and one that is approved. */
  readonly draftId: string
  readonly approvedId: string
  /** A replay of affected answers. */
  readonly replayId: string
}

const hours = (time: string) => ({
  text: `# Opening hours\n\nThe museum opens at ${time} o'clock in the morning. On Mondays the museum is closed.`
})
const tower = {
  text: "# Tower\n\nThe tower was built of red brick in the old style. A staircase of 210 steps leads to the upper gallery."
}

const ready = (own: Own, id: string) =>
  until(
    () => own("GET", `/api/sources/${id}`),
    ({ status }) => status === "READY",
    30_000
  )

/** The agent alone, with two questions that went wrong, one of which the team answered. */
export const openMuseum = async (spoke: Spoke, own: Own) => {
  const { agent } = await own("POST", "/api/agents", { name: "Museum" })
  const agentId: string = agent.id
  const add = async (name: string, config: object): Promise<string> => {
    const { source } = await own("POST", "/api/sources", { agentId, type: "TEXT", name, config })
    await ready(own, source.id)
    return source.id
  }
  const hoursId = await add("Opening hours", hours("nine"))
  await add("Terms", {
    text: "# Tickets\n\nVisitors can return unused tickets within 30 days at the counter."
  })
  await add("Questions", {
    text: "# Refunds\n\nVisitors can return unused tickets within 14 days at the counter."
  })
  await add("Guide", tower)
  await add("Leaflet", tower)
  const { secret } = await own("POST", `/api/agents/${agentId}/keys`, { name: "Desk", permissions: ["*"] })
  const ask = async (message: string, externalEndUserId: string) => {
    const { body, status } = await spoke.request("POST", "/v1/chat", {
      key: secret,
      body: { message, externalEndUserId }
    })
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body.data
  }
  const { conversationId } = await ask("Where is the umbrella stand of the house?", "ada")
  await ask("Where is the umbrella stand of that house?", "bob")
  await own("POST", `/api/conversations/${conversationId}/takeover`)
  await own("POST", `/api/conversations/${conversationId}/messages`, {
    content: "It stands behind the cloakroom, on the left."
  })
  await ask("When does the museum open in the morning?", "eve")
  await ask("when does the museum open in the morning?", "kay")
  return { agentId, hoursId }
}

const previewed = async (own: Own, id: string) => {
  await own("POST", `/api/corrections/${id}/preview`, {})
  await until(
    () => own("GET", `/api/corrections/${id}`),
    ({ correction }) => correction.preview?.isComplete === true,
    30_000
  )
}

/** Until the background job has found what there is to find: it looks once a minute. */
export const found = (own: Own, agentId: string) =>
  until(
    () => own("GET", `/api/agents/${agentId}/findings`),
    ({ counts, isComplete }) => isComplete && counts.contradiction > 0 && counts.duplicate > 0,
    90_000
  )

/** All of it, as the pages are pictured with. */
export const fillMuseum = async (spoke: Spoke, own: Own): Promise<Museum> => {
  const { agentId, hoursId } = await openMuseum(spoke, own)
  const { groups } = await own("GET", `/api/insights?agentId=${agentId}`)
  const make = async (fields: object): Promise<string> => {
    const { correction } = await own("POST", `/api/agents/${agentId}/corrections`, {
      group: groups[0].id,
      ...fields
    })
    await previewed(own, correction.id)
    return correction.id
  }
  const draftId = await make({})
  const approvedId = await make({
    question: "May I take photographs in the museum?",
    answer: "Yes, without a flash."
  })
  await own("POST", `/api/corrections/${approvedId}/approve`)
  await own("PATCH", `/api/sources/${hoursId}`, { config: hours("ten") })
  await ready(own, hoursId)
  const affected = await until(
    () => own("GET", `/api/agents/${agentId}/impact`),
    ({ answers }) => answers.length > 0,
    30_000
  )
  if (affected.answers.length === 0) throw new Error("No answer is affected.")
  const { experiment } = await own("POST", `/api/agents/${agentId}/impact/replay`, {})
  await until(
    () => own("GET", `/api/experiments/${experiment.id}`),
    (data) => data.experiment.status === "complete",
    30_000
  )
  await found(own, agentId)
  return { agentId, draftId, approvedId, replayId: experiment.id }
}
