/** One agent: the part of it that the address names. */
import { useQuery } from "@tanstack/react-query"
import { type ComponentType, lazy, Suspense } from "react"
import { agent as agentQuery } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { PageSkeleton } from "../../components/Page.tsx"
import { agentMenu, type Part } from "../../shell/agentMenu.ts"
import { LoadedPage } from "../LoadedPage.tsx"
import { NotFound } from "../NotFound.tsx"
import type { PartProps } from "./AgentPart.tsx"
import { agentParts } from "./agentParts.ts"

const partComponents: Readonly<Record<Part, ComponentType<PartProps>>> = {
  try: lazy(agentParts.workbench),
  sources: lazy(agentParts.agentSources),
  tools: lazy(agentParts.tools),
  settings: lazy(agentParts.settings),
  versions: lazy(agentParts.versions),
  widget: lazy(agentParts.designer),
  channels: lazy(agentParts.channels),
  keys: lazy(agentParts.keys),
  improve: lazy(agentParts.improve),
  cases: lazy(agentParts.testCases),
  experiments: lazy(agentParts.experiments)
}

interface Props {
  readonly id: string
  /** Undefined for the first one that the person may see. */
  readonly tab: string | undefined
  readonly user: User
}

const AgentPage = ({ id, tab, user }: Props) => {
  const query = useQuery(agentQuery(id))
  const visible = agentMenu.filter(({ minRole }) => atLeast(user.role, minRole))
  const part = tab === undefined ? visible[0] : visible.find((one) => one.part === tab)
  if (part === undefined) return <NotFound />
  const Part = partComponents[part.part]
  return (
    <LoadedPage query={query} what="agent" back="/agents">
      {(agent) => (
        <Suspense fallback={<PageSkeleton />}>
          <Part key={`${id} ${part.part}`} agent={agent} user={user} />
        </Suspense>
      )}
    </LoadedPage>
  )
}

export default AgentPage
