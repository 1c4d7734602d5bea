/** The settings of the test chat: the next message uses the current input, and *Save* stores it. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { Link } from "wouter"
import type { Agent } from "../../api/Agents.ts"
import { isOutdated } from "../../api/Client.ts"
import { tools } from "../../api/Tools.ts"
import { Button } from "../../components/Button.tsx"
import { Select, TextArea, TextField } from "../../components/Field.tsx"
import { Problem } from "../../components/Problem.tsx"
import { ConflictingValue, ConflictNotice, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useSettingsWords } from "../agents/settingsWords.ts"
import { ModelField, StyleFields } from "../agents/StyleFields.tsx"
import type { AgentForm } from "../agents/useAgentForm.ts"
import css from "./SettingsPane.module.css"

const words = texts(
  {
    tried: "What you change here answers your next message. Customers get it once you save.",
    readOnly: "Only admins can change these.",
    all: "All settings",
    tools: "Tools",
    noTools: "This agent calls no tools.",
    manageTools: "Manage tools",
    standard: "Standard"
  },
  {
    tried:
      "Was Sie hier ändern, beantwortet Ihre nächste Nachricht. Kunden erhalten es, sobald Sie speichern.",
    readOnly: "Nur Admins können dies ändern.",
    all: "Alle Einstellungen",
    tools: "Werkzeuge",
    noTools: "Dieser Agent ruft keine Werkzeuge auf.",
    manageTools: "Werkzeuge verwalten",
    standard: "Standard"
  }
)

const Tools = ({ agent }: { readonly agent: Agent }) => {
  const t = useText(words)
  const { data } = useInfiniteQuery(tools(agent.id))
  const names = [...agent.tools, ...(data?.pages.flatMap((page) => page.tools.map(({ name }) => name)) ?? [])]
  return (
    <section className={css["tools"]} aria-label={t.tools}>
      <h2>{t.tools}</h2>
      {names.length === 0 ? (
        <p className={css["soft"]}>{t.noTools}</p>
      ) : (
        <ul>
          {names.map((name) => (
            <li key={name}>
              <code>{name}</code>
            </li>
          ))}
        </ul>
      )}
      <Link href={`/agents/${agent.id}/tools`}>{t.manageTools}</Link>
    </section>
  )
}

/** Paths of the fields that show their own validation issues. */
export const settingsPaneFields = [
  "instructions",
  "model",
  "retrieval.topK",
  "retrieval.minScore",
  "grounding.contextTokens",
  "grounding.maxSearches"
] as const

interface Props {
  readonly agent: Agent
  readonly form: AgentForm
  readonly mayChange: boolean
}

export const SettingsPane = ({ agent, form, mayChange }: Props) => {
  const t = useText(words)
  const s = useSettingsWords()
  const common = useText(commonTexts)
  const { draft, errorOf, general, save } = form
  const { change, value } = draft
  const readOnly = !mayChange
  return (
    <div className={css["settings"]}>
      <div className={css["fields"]}>
        <p className={css["soft"]}>{mayChange ? t.tried : t.readOnly}</p>
        <Form onSubmit={() => save.mutate(true)}>
          <ConflictNotice draft={draft} problem={save.error} />
          <TextArea
            label={s.instructions}
            rows={9}
            readOnly={readOnly}
            value={value.instructions}
            onChange={(instructions) => change({ instructions })}
            error={errorOf("instructions")}
          />
          <ConflictingValue draft={draft} name="instructions" />
          <ModelField form={form} readOnly={readOnly} />
          <StyleFields form={form} readOnly={readOnly} />
          <div className={css["pair"]}>
            <TextField
              label={s.topK}
              inputMode="numeric"
              readOnly={readOnly}
              value={value.topK}
              onChange={(topK) => change({ topK })}
              error={errorOf("retrieval.topK")}
            />
            <TextField
              label={s.minScore}
              inputMode="decimal"
              placeholder={t.standard}
              readOnly={readOnly}
              value={value.minScore}
              onChange={(minScore) => change({ minScore })}
              error={errorOf("retrieval.minScore")}
            />
            <TextField
              label={s.contextTokens}
              inputMode="numeric"
              readOnly={readOnly}
              value={value.contextTokens}
              onChange={(contextTokens) => change({ contextTokens })}
              error={errorOf("grounding.contextTokens")}
            />
            <TextField
              label={s.maxSearches}
              inputMode="numeric"
              readOnly={readOnly}
              value={value.maxSearches}
              onChange={(maxSearches) => change({ maxSearches })}
              error={errorOf("grounding.maxSearches")}
            />
          </div>
          <ConflictingValue draft={draft} name="topK" />
          <ConflictingValue draft={draft} name="minScore" />
          <ConflictingValue draft={draft} name="contextTokens" />
          <ConflictingValue draft={draft} name="maxSearches" />
          <Select
            label={s.mode}
            options={[
              ["strict", s.strict],
              ["general", s.general]
            ]}
            disabled={readOnly}
            value={value.mode}
            onChange={(mode) => change({ mode })}
          />
          <ConflictingValue draft={draft} name="mode" />
          <Select
            label={s.unsupported}
            options={[
              ["annotate", s.annotate],
              ["withhold", s.withhold],
              ["handoff", s.handoff]
            ]}
            disabled={readOnly}
            value={value.unsupported}
            onChange={(unsupported) => change({ unsupported })}
          />
          <ConflictingValue draft={draft} name="unsupported" />
          {general === null || isOutdated(general) ? null : <Problem problem={general} />}
        </Form>
        <Tools agent={agent} />
        <Link href={`/agents/${agent.id}/settings`}>{t.all}</Link>
      </div>
      {mayChange && (draft.isDirty || save.isSuccess) ? (
        <div className={css["foot"]}>
          <DraftState draft={draft}>{save.isSuccess ? common.saved : ""}</DraftState>
          {draft.isDirty ? (
            <Button kind="primary" busy={save.isPending} onClick={() => save.mutate(true)}>
              {common.save}
            </Button>
          ) : null}
        </div>
      ) : null}
    </div>
  )
}
