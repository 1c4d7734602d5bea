/** Filters of the inbox: search, assignee, saved views, and the rarer ones behind a button. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { ListFilter, Search, X } from "lucide-react"
import { type FormEvent, useEffect, useId, useRef, useState } from "react"
import type { Agent } from "../../api/Agents.ts"
import { channels, states } from "../../api/Conversations.ts"
import { addView, type Filter, type Label, markAllRead, removeView, type View } from "../../api/Inbox.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { useShortcuts } from "../../window/useShortcuts.ts"
import { useNotificationSetting } from "../../window/notifications.ts"
import { toast } from "../../components/feedback/Toast.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import { useReason } from "../../text/useReason.ts"
import css from "./Filters.module.css"
import { words as sharedWords } from "./words.ts"

const words = texts(
  {
    search: "Search messages and people",
    clearSearch: "Clear search",
    whose: "Whose conversations",
    all: "All",
    mine: "Mine",
    unassigned: "Unassigned",
    unread: "Unread",
    filters: "Filters",
    filtersOf: (count: number) => `Filters (${count})`,
    everyAgent: "Every agent",
    everyChannel: "Every channel",
    everyState: "Every state",
    label: "Label",
    everyLabel: "Every label",
    clear: "Clear filters",
    readAll: "Mark all as read",
    readAllDone: "Everything is marked as read",
    notify: "Tell me by a notification and a sound",
    refused: "The browser does not allow notifications of this page.",
    views: "Saved views",
    viewName: "Save this view as",
    deleteView: (name: string) => `Delete view ${name}`
  },
  {
    search: "Nachrichten und Personen suchen",
    clearSearch: "Suche leeren",
    whose: "Wessen Gespräche",
    all: "Alle",
    mine: "Meine",
    unassigned: "Offen",
    unread: "Ungelesen",
    filters: "Filter",
    filtersOf: (count: number) => `Filter (${count})`,
    everyAgent: "Alle Agenten",
    everyChannel: "Alle Kanäle",
    everyState: "Jeder Stand",
    label: "Label",
    everyLabel: "Alle Labels",
    clear: "Filter aufheben",
    readAll: "Alle als gelesen markieren",
    readAllDone: "Alles ist als gelesen markiert",
    notify: "Mit Mitteilung und Ton Bescheid geben",
    refused: "Der Browser lässt Mitteilungen dieser Seite nicht zu.",
    views: "Gespeicherte Ansichten",
    viewName: "Diese Ansicht speichern als",
    deleteView: (name: string) => `Ansicht ${name} löschen`
  }
)

/** The option of a select that sets no filter. */
const anyValue = "all"
/** Debounce of the search field, in milliseconds. */
const searchDebounceMs = 250

interface SearchProps {
  readonly value: string
  readonly onChange: (q: string) => void
}

const SearchField = ({ onChange, value }: SearchProps) => {
  const t = useText(words)
  const [text, setText] = useState(value)
  const field = useRef<HTMLInputElement>(null)
  useShortcuts({ "/": () => field.current?.focus() })
  // The value is trimmed, but the input is kept: a space at its end may precede the next word.
  useEffect(() => setText((typed) => (typed.trim() === value ? typed : value)), [value])
  useEffect(() => {
    const trimmed = text.trim()
    if (trimmed === value) return
    const timer = setTimeout(() => onChange(trimmed), searchDebounceMs)
    return () => clearTimeout(timer)
  })
  const clear = () => {
    setText("")
    onChange("")
  }
  return (
    <div className={css["search"]}>
      <Search aria-hidden size={16} />
      <input
        ref={field}
        type="search"
        aria-label={t.search}
        placeholder={t.search}
        maxLength={200}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {text === "" ? null : (
        <Button kind="quiet" icon aria-label={t.clearSearch} onClick={clear}>
          <X aria-hidden size={16} />
        </Button>
      )}
    </div>
  )
}

const without = (filter: Filter, ...names: ReadonlyArray<keyof Filter>): Filter =>
  Object.fromEntries(Object.entries(filter).filter(([name]) => !names.some((one) => one === name)))

const isSameFilter = (one: Filter, other: Filter) =>
  JSON.stringify(Object.entries(one).toSorted()) === JSON.stringify(Object.entries(other).toSorted())

interface Props {
  readonly filter: Filter
  readonly onChange: (filter: Filter) => void
  readonly agents: ReadonlyArray<Pick<Agent, "id" | "name">>
  readonly labels: ReadonlyArray<Label>
  readonly views: ReadonlyArray<View>
  readonly user: User
}

export const Filters = ({ agents, filter, labels, onChange, user, views }: Props) => {
  const t = useText(words)
  const names = useText(sharedWords)
  const common = useText(commonTexts)
  const reason = useReason()
  const queries = useQueryClient()
  const panelId = useId()
  const [isPanelOpen, setPanelOpen] = useState(false)
  const [name, setName] = useState("")
  const [isNotifying, setNotifying] = useNotificationSetting()
  const setField = (key: "agentId" | "channel" | "state" | "label", value: string) => {
    const rest = without(filter, key)
    onChange(value === anyValue ? rest : { ...rest, [key]: value })
  }
  const assigneeFilters: ReadonlyArray<readonly [string, Filter]> = [
    [t.all, {}],
    [t.mine, { assignee: "me" }],
    [t.unassigned, { assignee: "none" }],
    [t.unread, { unread: "true" }]
  ]
  const otherFilters = without(filter, "assignee", "unread")
  const assigneeFilter = {
    ...(filter.assignee === undefined ? {} : { assignee: filter.assignee }),
    ...(filter.unread === undefined ? {} : { unread: filter.unread })
  }
  const panelFilterCount = Object.keys(without(filter, "assignee", "unread", "q")).length
  const refresh = () => queries.invalidateQueries({ queryKey: ["inbox", "items"] })
  const refreshAfter = (request: Promise<unknown>) =>
    void request.then(refresh, (problem: unknown) => toast(reason(problem).sentence))
  const saveView = useMutation({
    mutationFn: (viewName: string) => addView(viewName, filter),
    onSuccess: (_, viewName) => {
      setName((typed) => (typed.trim() === viewName ? "" : typed))
      return refresh()
    },
    onError: (problem) => toast(reason(problem).sentence)
  })
  const save = (event: FormEvent) => {
    event.preventDefault()
    if (name.trim() !== "") saveView.mutate(name.trim())
  }
  const readAll = () =>
    void markAllRead().then(
      () => {
        toast(t.readAllDone)
        void queries.invalidateQueries({ queryKey: ["conversations"] })
        void queries.resetQueries({ queryKey: ["inbox", "pages"] })
      },
      (problem: unknown) => toast(reason(problem).sentence)
    )
  return (
    <div className={css["filters"]}>
      <SearchField
        value={filter.q ?? ""}
        onChange={(q) => onChange(q === "" ? without(filter, "q") : { ...filter, q })}
      />
      <div className={css["row"]}>
        <div role="group" aria-label={t.whose} className={css["chips"]}>
          {assigneeFilters.map(([title, fields]) => (
            <button
              key={title}
              type="button"
              className={css["chip"]}
              aria-pressed={isSameFilter(assigneeFilter, fields)}
              onClick={() => onChange({ ...otherFilters, ...fields })}
            >
              {title}
            </button>
          ))}
        </div>
        <Button
          kind="quiet"
          icon
          aria-label={panelFilterCount === 0 ? t.filters : t.filtersOf(panelFilterCount)}
          aria-expanded={isPanelOpen}
          aria-controls={panelId}
          onClick={() => setPanelOpen(!isPanelOpen)}
        >
          <ListFilter aria-hidden size={17} />
          {panelFilterCount === 0 ? null : (
            <span aria-hidden className={css["count"]}>
              {panelFilterCount}
            </span>
          )}
        </Button>
      </div>
      {views.length === 0 ? null : (
        <div role="group" aria-label={t.views} className={css["chips"]}>
          {views.map((view) => (
            <span key={view.id} className={css["view"]}>
              <button
                type="button"
                className={css["chip"]}
                aria-pressed={isSameFilter(filter, view.filter)}
                onClick={() => onChange(view.filter)}
              >
                {view.name}
              </button>
              {isPanelOpen && atLeast(user.role, "agent") ? (
                <button
                  type="button"
                  className={css["chip"]}
                  aria-label={t.deleteView(view.name)}
                  onClick={() => refreshAfter(removeView(view.id))}
                >
                  ×
                </button>
              ) : null}
            </span>
          ))}
        </div>
      )}
      <div id={panelId} hidden={!isPanelOpen} className={css["panel"]}>
        <Select
          label={names.agent}
          options={[[anyValue, t.everyAgent], ...agents.map((one) => [one.id, one.name] as const)]}
          value={filter.agentId ?? anyValue}
          onChange={(value) => setField("agentId", value)}
        />
        <Select
          label={names.channel}
          options={[[anyValue, t.everyChannel], ...channels.map((one) => [one, names[one]] as const)]}
          value={filter.channel ?? anyValue}
          onChange={(value) => setField("channel", value)}
        />
        <Select
          label={names.state}
          options={[[anyValue, t.everyState], ...states.map((one) => [one, names[one]] as const)]}
          value={filter.state ?? anyValue}
          onChange={(value) => setField("state", value)}
        />
        {labels.length === 0 ? null : (
          <Select
            label={t.label}
            options={[[anyValue, t.everyLabel], ...labels.map((one) => [one.id, one.name] as const)]}
            value={filter.label ?? anyValue}
            onChange={(value) => setField("label", value)}
          />
        )}
        {Object.keys(filter).length === 0 || !atLeast(user.role, "agent") ? null : (
          <form className={css["save"]} onSubmit={save}>
            <TextField label={t.viewName} value={name} maxLength={60} onChange={setName} />
            <Button type="submit" busy={saveView.isPending}>
              {common.save}
            </Button>
          </form>
        )}
        <div className={css["row"]}>
          <Switch
            label={t.notify}
            isSelected={isNotifying}
            onChange={(on) =>
              void setNotifying(on).then((allowed) => {
                if (!allowed) toast(t.refused)
              })
            }
          />
        </div>
        <div className={css["row"]}>
          <Button kind="quiet" onClick={readAll}>
            {t.readAll}
          </Button>
          {Object.keys(filter).length === 0 ? null : (
            <Button kind="quiet" onClick={() => onChange({})}>
              {t.clear}
            </Button>
          )}
        </div>
      </div>
    </div>
  )
}
