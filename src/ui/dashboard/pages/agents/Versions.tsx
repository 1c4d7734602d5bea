/** Versions of an agent: each change, its author, and which version answers. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { useLocation } from "wouter"
import {
  type Agent,
  agent as agentQuery,
  type AgentVersion,
  agentVersion,
  agentVersions,
  publishVersion
} from "../../api/Agents.ts"
import { isBlockedByTestCases } from "../../api/Experiments.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { members } from "../../api/Team.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Loaded } from "../../components/Page.tsx"
import { Cell, RowActions, RowButton } from "../../components/RowActions.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { testChatOf } from "../workbench/TestChat.ts"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import css from "./Versions.module.css"
import { Listing } from "../../components/Listing.tsx"

const words = texts(
  {
    title: "Versions",
    lead: "Every change of the settings makes a version. The published one answers.",
    version: "Version",
    when: "When",
    who: "Who",
    what: "What changed",
    first: "The first one",
    same: "Nothing",
    show: "Show",
    service: "The service",
    key: "Key",
    token: "Access token",
    user: "User",
    operator: "Operator",
    published: "Published",
    share: (percent: number) => `${percent}% of the conversations`,
    publish: "Publish this version",
    force: "Publish all the same",
    question: (version: number) =>
      `From the next message on, version ${version} answers. Answers that are being written stay as they began.`,
    forcing: (version: number) =>
      `Version ${version} did not pass what is asked of a version before it is published. It answers from the next message on if you publish it all the same.`,
    tryIt: "Try it",
    before: "before",
    after: "after",
    empty: "empty"
  },
  {
    title: "Versionen",
    lead: "Jede Änderung der Einstellungen ergibt eine Version. Die veröffentlichte antwortet.",
    version: "Version",
    when: "Wann",
    who: "Wer",
    what: "Was sich geändert hat",
    first: "Die erste",
    same: "Nichts",
    show: "Zeigen",
    service: "Der Dienst",
    key: "Schlüssel",
    token: "Zugriffstoken",
    user: "Benutzer",
    operator: "Betreiber",
    published: "Veröffentlicht",
    share: (percent: number) => `${percent} % der Gespräche`,
    publish: "Diese Version veröffentlichen",
    force: "Trotzdem veröffentlichen",
    question: (version: number) =>
      `Ab der nächsten Nachricht antwortet Version ${version}. Was gerade geschrieben wird, bleibt, wie es begann.`,
    forcing: (version: number) =>
      `Version ${version} hat nicht bestanden, was vor einer Veröffentlichung verlangt ist. Wird sie trotzdem veröffentlicht, antwortet sie ab der nächsten Nachricht.`,
    tryIt: "Ausprobieren",
    before: "vorher",
    after: "nachher",
    empty: "leer"
  }
)

type Value = string | number | boolean | null | ReadonlyArray<string>

const textOf = (value: Value, empty: string): string => {
  const text = typeof value === "object" ? (value ?? []).join(", ") : String(value)
  return text === "" ? empty : text
}

interface ChangesProps {
  readonly agentId: string
  readonly version: number
}

const Changes = ({ agentId, version }: ChangesProps) => {
  const t = useText(words)
  const query = useQuery(agentVersion(agentId, version))
  return (
    <Loaded query={query}>
      {({ changes }) =>
        changes.length === 0 ? (
          <span className={css["soft"]}>{version === 1 ? t.first : t.same}</span>
        ) : (
          <dl className={css["changes"]}>
            {changes.map(({ after, before, field }) => (
              <div key={field}>
                <dt>
                  <code>{field}</code>
                </dt>
                <dd>
                  <del>
                    <span className="visually-hidden">{t.before}: </span>
                    {textOf(before, t.empty)}
                  </del>
                  <ins>
                    <span className="visually-hidden">{t.after}: </span>
                    {textOf(after, t.empty)}
                  </ins>
                </dd>
              </div>
            ))}
          </dl>
        )
      }
    </Loaded>
  )
}

/** Loaded on demand. */
const WhatChanged = ({ agentId, version }: ChangesProps) => {
  const t = useText(words)
  const [isOpen, setOpen] = useState(false)
  return isOpen ? (
    <Changes agentId={agentId} version={version} />
  ) : (
    <Button kind="quiet" aria-label={`${t.show}: ${version}`} onClick={() => setOpen(true)}>
      {t.show}
    </Button>
  )
}

/** Who made each version: members by their e-mail address. */
const useAuthors = () => {
  const t = useText(words)
  const team = useAllPages(useInfiniteQuery(members), ({ users }) => users) ?? []
  const emails = new Map(team.map(({ email, id }) => [id, email]))
  return ({ author }: AgentVersion) =>
    author === null ? t.service : (emails.get(author.id) ?? t[author.type])
}

const Actions = ({
  agent,
  user,
  version
}: {
  readonly agent: Agent
  readonly user: User
  readonly version: number
}) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const [isGatedVersion, setGated] = useState(false)
  if (version === agent.publishedVersion) return null
  return (
    <RowActions
      of={String(version)}
      actions={
        atLeast(user.role, "admin")
          ? [
              {
                label: t.publish,
                does: {
                  title: t.publish,
                  question: isGatedVersion ? t.forcing(version) : t.question(version),
                  action: isGatedVersion ? t.force : t.publish,
                  onConfirm: async () => {
                    const { agent: published } = await publishVersion(
                      agent.id,
                      version,
                      isGatedVersion
                    ).catch((problem: unknown) => {
                      setGated(isBlockedByTestCases(problem))
                      throw problem
                    })
                    queries.setQueryData(agentQuery(agent.id).queryKey, published)
                    await queries.invalidateQueries({ queryKey: agentVersions(agent.id).queryKey })
                  }
                }
              }
            ]
          : []
      }
    >
      {atLeast(user.role, "agent") ? (
        <RowButton
          label={t.tryIt}
          of={String(version)}
          onClick={() => {
            testChatOf(user.id, agent.id).tryVersion(version)
            navigate(`/agents/${agent.id}/try`)
          }}
        />
      ) : null}
    </RowActions>
  )
}

const Versions = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const { moment } = useFormat()
  const query = useInfiniteQuery(agentVersions(agent.id))
  const authorOf = useAuthors()
  const { split } = agent
  return (
    <AgentPart part="versions" agent={agent} user={user} lead={t.lead} guide="versions">
      <Listing
        query={query}
        rowsOf={({ versions }) => versions}
        empty={null}
        label={t.title}
        keyOf={({ version }) => String(version)}
        columns={[
          {
            title: t.version,
            cell: ({ note, published, version }) => (
              <Cell notes={[note]}>
                <strong>{`${t.version} ${version}`}</strong>{" "}
                {published ? <Badge tone="good">{t.published}</Badge> : null}
                {split?.version === version ? (
                  <Badge tone="accent">{t.share(Math.round(split.share * 100))}</Badge>
                ) : null}
              </Cell>
            )
          },
          { title: t.when, noWrap: true, cell: ({ createdAt }) => moment(createdAt) },
          { title: t.who, cell: authorOf },
          { title: t.what, cell: ({ version }) => <WhatChanged agentId={agent.id} version={version} /> }
        ]}
        actions={({ version }) => <Actions agent={agent} user={user} version={version} />}
      />
    </AgentPart>
  )
}

export default Versions
