/** Budgets of model costs: admins create, change and remove them. Shows how much is spent. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query"
import { keys } from "../../api/Keys.ts"
import { type Budget, createBudget, deleteBudget, setLimit, usage, type Usage } from "../../api/Usage.ts"
import { Select, TextField } from "../../components/Field.tsx"
import { useCreateDialog } from "../../components/Listing.tsx"
import { Section } from "../../components/Page.tsx"
import { RowActions } from "../../components/RowActions.tsx"
import { Table } from "../../components/Table.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useSaveAndClose } from "../../forms/useSaveAndClose.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { parseNumber } from "../../text/parseNumber.ts"
import { words } from "./budgetWords.ts"
import css from "./Usage.module.css"

type Agents = Usage["agents"]

const nanoPerUsd = 1e9
const toNanoUsd = (usd: string) => Math.round(parseNumber(usd) * nanoPerUsd)
/** Pattern of an amount with up to nine decimals, but not three: 1.000 could mean one or a thousand. */
const amountPattern = "[0-9]+([.,]([0-9]{1,2}|[0-9]{4,9}))?|0[.,][0-9]{3}"
/** A stored amount as text that matches {@link amountPattern}. */
const amountText = (nanoUsd: number) => String(nanoUsd / nanoPerUsd).replace(/\.\d{3}$/, "$&0")

/** The option for the whole organisation, and for all keys of an agent. */
const everything = "all"

interface KeyProps {
  readonly agentId: string
  readonly value: string
  readonly onChange: (keyId: string) => void
}

const KeySelect = ({ agentId, onChange, value }: KeyProps) => {
  const t = useText(words)
  const allKeys = useAllPages(useInfiniteQuery(keys(agentId)), (page) => page.keys) ?? []
  const usable = allKeys.filter(({ status }) => status !== "REVOKED")
  return (
    <Select
      label={t.key}
      options={[[everything, t.allKeys] as const, ...usable.map(({ id, name }) => [id, name] as const)]}
      value={value}
      onChange={onChange}
    />
  )
}

const defaultPeriod = (): Budget["period"] => "month"
const emptyForm = { agentId: everything, keyId: everything, period: defaultPeriod(), usd: "" }

interface CreateProps {
  readonly agents: Agents
  readonly onClose: () => void
}

const CreateBudget = ({ agents, onClose }: CreateProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft({ name: "budget", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const subject = () => {
    if (value.agentId === everything) return {}
    return value.keyId === everything ? { agentId: value.agentId } : { keyId: value.keyId }
  }
  const create = useSaveAndClose({
    save: () => createBudget({ ...subject(), period: value.period, limitNanoUsd: toNanoUsd(value.usd) }),
    refresh: () => queries.invalidateQueries({ queryKey: usage.queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(create.error, ["limitNanoUsd"])
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <Select
        label={t.subject}
        options={[
          [everything, t.organisation] as const,
          ...agents.map(({ agentId, name }) => [agentId, t.agent(name)] as const)
        ]}
        value={value.agentId}
        onChange={(agentId) => change({ agentId, keyId: everything })}
      />
      {value.agentId === everything ? null : (
        <KeySelect agentId={value.agentId} value={value.keyId} onChange={(keyId) => change({ keyId })} />
      )}
      <Select
        label={t.period}
        options={[["month", t.month] as const, ["day", t.day] as const]}
        value={value.period}
        onChange={(chosen) => change({ period: chosen })}
      />
      <TextField
        label={t.limit}
        help={t.limitHelp}
        guide="usage#budgets"
        inputMode="decimal"
        pattern={amountPattern}
        required
        autoFocus
        value={value.usd}
        onChange={(usd) => change({ usd })}
        error={errorOf("limitNanoUsd")}
      />
      <DialogActions draft={draft} busy={create.isPending} onClose={onClose} action={common.create} />
    </Form>
  )
}

interface ChangeLimitProps {
  readonly budget: Budget
  readonly onClose: () => void
}

const ChangeLimit = ({ budget, onClose }: ChangeLimitProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `budget-${budget.id}`,
    title: t.changeTitle,
    stored: { usd: amountText(budget.limitNanoUsd) }
  })
  const save = useSaveAndClose({
    save: () => setLimit(budget, toNanoUsd(draft.value.usd)),
    refresh: () => queries.invalidateQueries({ queryKey: usage.queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(save.error, ["limitNanoUsd"])
  return (
    <Form onSubmit={() => save.mutate()} problem={general}>
      <TextField
        label={t.limit}
        inputMode="decimal"
        pattern={amountPattern}
        required
        autoFocus
        value={draft.value.usd}
        onChange={(usd) => draft.change({ usd })}
        error={errorOf("limitNanoUsd")}
      />
      <DialogActions draft={draft} busy={save.isPending} onClose={onClose} />
    </Form>
  )
}

const spentShare = ({ limitNanoUsd, spentNanoUsd }: Budget) => spentNanoUsd / limitNanoUsd

/** A name for a budget: whose it is, and its period. */
const useBudgetName = (agents: Agents) => {
  const t = useText(words)
  return ({ agentId, keyId, period }: Budget) => {
    const name = agents.find((agent) => agent.agentId === agentId)?.name ?? agentId
    const subject = keyId === null ? (name === null ? t.organisation : t.agent(name)) : t.ofKey(keyId)
    return `${subject}, ${period === "day" ? t.day : t.month}`
  }
}

/** Shows budgets that are spent, or nearly spent. */
export const BudgetNotice = ({ agents, budgets }: Pick<Usage, "agents" | "budgets">) => {
  const t = useText(words)
  const nameOf = useBudgetName(agents)
  const over = budgets.filter((budget) => spentShare(budget) >= 1).map(nameOf)
  const near = budgets.filter((budget) => spentShare(budget) >= 0.8 && spentShare(budget) < 1).map(nameOf)
  return (
    <>
      {over.length === 0 ? null : (
        <p role="alert" className={css["over"]}>
          {t.over(over.join("; "))}
        </p>
      )}
      {near.length === 0 ? null : (
        <p role="status" className={css["near"]}>
          {t.near(near.join("; "))}
        </p>
      )}
    </>
  )
}

interface Props extends Pick<Usage, "agents" | "budgets"> {
  readonly mayChange: boolean
}

export const Budgets = ({ agents, budgets, mayChange }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const { money, moment, percent } = useFormat()
  const nameOf = useBudgetName(agents)
  const { button, dialog } = useCreateDialog({
    title: t.add,
    isPlain: true,
    form: (close) => <CreateBudget agents={agents} onClose={close} />
  })
  return (
    <Section title={t.title} guide="usage#budgets" actions={mayChange ? button : undefined}>
      {dialog}
      {budgets.length === 0 ? (
        <p className={css["term"]}>{t.empty}</p>
      ) : (
        <Table
          label={t.title}
          rows={budgets}
          keyOf={({ id }) => id}
          columns={[
            { title: t.subject, cell: nameOf },
            {
              title: t.spent,
              alignEnd: true,
              cell: (budget) => (
                <>
                  {money(budget.spentNanoUsd)}{" "}
                  <span className={css["term"]}>
                    {t.ofLimit(money(budget.limitNanoUsd), percent(spentShare(budget)))}
                    {budget.reservedNanoUsd === 0 ? null : `, ${t.reserved(money(budget.reservedNanoUsd))}`}
                  </span>
                </>
              )
            },
            { title: t.resets, alignEnd: true, cell: ({ resetsAt }) => moment(resetsAt) }
          ]}
          actions={
            mayChange
              ? (budget) => (
                  <RowActions
                    of={nameOf(budget)}
                    actions={[
                      {
                        label: t.change,
                        does: {
                          title: t.changeTitle,
                          form: (close) => <ChangeLimit budget={budget} onClose={close} />
                        }
                      },
                      {
                        label: common.delete,
                        does: {
                          title: t.removal,
                          question: t.question(nameOf(budget)),
                          action: common.delete,
                          onConfirm: () =>
                            deleteBudget(budget.id).then(() =>
                              queries.invalidateQueries({ queryKey: usage.queryKey })
                            )
                        }
                      }
                    ]}
                  />
                )
              : null
          }
        />
      )}
    </Section>
  )
}
