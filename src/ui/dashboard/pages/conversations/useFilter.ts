/** The filter of the inbox, which the address of the page contains. */
import { useMemo } from "react"
import { useSearchParams } from "wouter"
import { channels, states } from "../../api/Conversations.ts"
import type { Filter } from "../../api/Inbox.ts"

const parameterNames = ["agentId", "state", "channel", "assignee", "label", "unread", "q"] as const

const filterOf = (parameters: URLSearchParams): Filter => {
  const text = (name: (typeof parameterNames)[number]) => {
    const value = parameters.get(name)
    return value === null || value === "" ? undefined : value
  }
  const agentId = text("agentId")
  const assignee = text("assignee")
  const label = text("label")
  const q = text("q")
  const state = states.find((one) => one === text("state"))
  const channel = channels.find((one) => one === text("channel"))
  return {
    ...(agentId === undefined ? {} : { agentId }),
    ...(state === undefined ? {} : { state }),
    ...(channel === undefined ? {} : { channel }),
    ...(assignee === undefined ? {} : { assignee }),
    ...(label === undefined ? {} : { label }),
    ...(text("unread") === "true" ? { unread: "true" as const } : {}),
    ...(q === undefined ? {} : { q: q.slice(0, 200) })
  }
}

const parametersOf = (filter: Filter): URLSearchParams => {
  const parameters = new URLSearchParams()
  for (const name of parameterNames) {
    const value = filter[name]
    if (value !== undefined) parameters.set(name, value)
  }
  return parameters
}

export const useFilter = () => {
  const [parameters, setParameters] = useSearchParams()
  const queryString = parameters.toString()
  const filter = useMemo(() => filterOf(new URLSearchParams(queryString)), [queryString])
  return {
    filter,
    /** Query string of a page that keeps the filter. */
    search: queryString === "" ? "" : `?${queryString}`,
    setFilter: (next: Filter) => setParameters(parametersOf(next), { replace: true })
  }
}
