/** The page of one part of an agent: its title, the agent's current failures, and the part itself. */
import type { ReactNode } from "react"
import type { Agent } from "../../api/Agents.ts"
import type { User } from "../../api/Session.ts"
import { Page } from "../../components/Page.tsx"
import { type Part, usePartNames } from "../../shell/agentMenu.ts"
import { LastFailure } from "./LastFailure.tsx"
import { ProblemNotices } from "./problems/Problems.tsx"

export interface PartProps {
  readonly agent: Agent
  readonly user: User
}

interface Props extends PartProps {
  readonly part: Part
  readonly lead?: ReactNode
  /** Page and heading of the documentation about the part. */
  readonly guide?: string
  readonly actions?: ReactNode
  /** For forms and texts: limits the width. */
  readonly narrow?: boolean
  readonly children: ReactNode
}

export const AgentPart = ({ agent, children, part, user, ...page }: Props) => {
  const title = usePartNames()[part]
  return (
    <Page {...page} title={title} windowTitle={`${title} · ${agent.name}`} above={agent.name}>
      <LastFailure agentId={agent.id} />
      <ProblemNotices agentId={agent.id} user={user} />
      {children}
    </Page>
  )
}
