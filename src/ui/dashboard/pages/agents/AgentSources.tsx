/** Sources of the agent. */
import type { User } from "../../api/Session.ts"
import { SourceList } from "../sources/SourceList.tsx"

const AgentSources = ({ agentId, user }: { readonly agentId: string; readonly user: User }) => (
  <SourceList agentId={agentId} user={user} />
)

export default AgentSources
