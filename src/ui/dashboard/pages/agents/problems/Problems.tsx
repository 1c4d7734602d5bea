/** Failing channels, models and tools of an agent: on its page, in the list of agents, and beside a channel or tool. */
import { useQuery } from "@tanstack/react-query"
import { Link } from "wouter"
import { type AgentProblem, agentProblems } from "../../../api/Agents.ts"
import type { User } from "../../../api/Session.ts"
import { Badge } from "../../../components/Badge.tsx"
import { useFormat } from "../../../text/Format.ts"
import { texts, useText } from "../../../text/Language.tsx"
import { useFailure } from "../../../text/useFailure.ts"
import css from "./Problems.module.css"

const words = texts(
  {
    failing: "Failing",
    works: "Works",
    channel: (name: string) => `The channel ${name} fails.`,
    tool: (name: string) => `The tool ${name} fails.`,
    model: "The model gives no answer.",
    since: (since: string) => `Since ${since}.`,
    channelHelp:
      "Check the account at the provider. If it refused the token, enter a new one under “Channels”.",
    toolHelp: "Check its address and its credential, and test it, under “Tools”.",
    toChannels: "To the channels",
    toTools: "To the tools"
  },
  {
    failing: "Gestört",
    works: "In Ordnung",
    channel: (name: string) => `Der Kanal ${name} ist gestört.`,
    tool: (name: string) => `Das Werkzeug ${name} ist gestört.`,
    model: "Das Modell antwortet nicht.",
    since: (since: string) => `Seit ${since}.`,
    channelHelp:
      "Bitte das Konto beim Anbieter prüfen. Hat er den Token abgelehnt, unter „Kanäle“ einen neuen eintragen.",
    toolHelp: "Bitte Adresse und Zugang prüfen und das Werkzeug testen, unter „Werkzeuge“.",
    toChannels: "Zu den Kanälen",
    toTools: "Zu den Werkzeugen"
  }
)

/** Undefined until they are known. */
const useProblems = (user: User, agentId: string): ReadonlyArray<AgentProblem> | undefined =>
  useQuery(agentProblems(user)).data?.filter((problem) => problem.agentId === agentId)

/** Messages of providers are in English. Failures of models and tools begin with a code. */
const Reason = ({ problem: { kind, reason } }: { readonly problem: AgentProblem }) => {
  const failureText = useFailure()
  if (reason === null) return null
  if (kind === "model") return <span>{failureText({ code: reason, provider: reason })}</span>
  return <span lang="en">{reason.replace(/^[A-Z_]+: /u, "").replace(/[^.]$/u, "$&.")}</span>
}

const useTitle = () => {
  const t = useText(words)
  return ({ kind, name }: AgentProblem) =>
    kind === "model" ? t.model : kind === "channel" ? t.channel(name ?? "") : t.tool(name ?? "")
}

interface Props {
  readonly agentId: string
  readonly user: User
}

/** On the agent's page: failing channels and tools. Failures of the model are shown by LastFailure, also to viewers. */
export const ProblemNotices = ({ agentId, user }: Props) => {
  const t = useText(words)
  const { moment } = useFormat()
  const title = useTitle()
  const problems = useProblems(user, agentId)?.filter(({ kind }) => kind !== "model") ?? []
  return (
    <div role="status" className={problems.length === 0 ? "visually-hidden" : css["notices"]}>
      {problems.map((problem) => (
        <div key={`${problem.kind} ${problem.target}`} className={css["notice"]}>
          <strong>{title(problem)}</strong> <Reason problem={problem} />{" "}
          <span>{t.since(moment(problem.since))}</span>{" "}
          <span>{problem.kind === "channel" ? t.channelHelp : t.toolHelp}</span>{" "}
          <Link href={`/agents/${agentId}/${problem.kind === "channel" ? "channels" : "tools"}`}>
            {problem.kind === "channel" ? t.toChannels : t.toTools}
          </Link>
        </div>
      ))}
    </div>
  )
}

/** In the list of agents. */
export const AgentState = ({ agentId, user }: Props) => {
  const t = useText(words)
  const title = useTitle()
  const problems = useProblems(user, agentId)
  if (problems === undefined) return null
  if (problems.length === 0) return <Badge tone="good">{t.works}</Badge>
  return (
    <span className={css["state"]}>
      <Badge tone="bad">{t.failing}</Badge>
      {problems.map((problem) => (
        <span key={`${problem.kind} ${problem.target}`} className={css["line"]}>
          {title(problem)}
        </span>
      ))}
    </span>
  )
}

interface TargetProps extends Props {
  readonly kind: AgentProblem["kind"]
  /** The id of the channel or the name of the tool. */
  readonly target: string
}

/** Beside a channel or a tool; nothing while it works. */
export const TargetProblem = ({ agentId, kind, target, user }: TargetProps) => {
  const t = useText(words)
  const { moment } = useFormat()
  const problem = useProblems(user, agentId)?.find((one) => one.kind === kind && one.target === target)
  if (problem === undefined) return null
  return (
    <span className={css["state"]}>
      <Badge tone="bad">{t.failing}</Badge>
      <span className={css["line"]}>
        <Reason problem={problem} /> {t.since(moment(problem.since))}
      </span>
    </span>
  )
}
