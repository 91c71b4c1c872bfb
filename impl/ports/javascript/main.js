#!/usr/bin/env node
// Speaks the pipe protocol: one JSON object a line on standard input, one answer line for each on standard output.
//
//   kvspec check "cmd:node main.js"
//   kvspec check "cmd:node main.js --fault releases-twice"     a planted fault, which must be caught

import { readSync, writeSync } from "node:fs";

import { BadRequest, BlockManager, Refused } from "./block_manager.js";
import { FAULTS } from "./faults.js";

const INTRODUCTION = {
  outcome: "hello",
  protocol: 1,
  version: "0.1",
  language: "JavaScript",
  snapshot: true,
  hash: true,
  declaration: {
    name: "kvspec-javascript",
    profiles: ["pool", "prefix", "order", "chunked", "one", "collision", "hash", "robust"],
    publish: "commit",
    full_hit: "last_block",
    covers: "known",
    credits_shared: true,
    release_in_flight: true,
    smallest_block_size: 1,
    nano_vllm_order: true,
  },
};

const STOPPED = '{"outcome":"stopped"}\n';

// Keys are 64-bit numbers, which JSON readers do not keep exactly: they travel as decimal text.
const text = (key) => key.toString();

/** One manager at a time, and the answer to each request. */
class Session {
  manager = null;

  constructor(Manager) {
    this.Manager = Manager;
  }

  answer(request) {
    switch (request.op) {
      case "hello":
        return INTRODUCTION;
      case "start":
        this.manager = new this.Manager(request.world);
        return { outcome: "started" };
      case "hash":
        return { outcome: "hash", key: text(this.hash(request)) };
      case "stop":
        return { outcome: "stopped" };
      default:
        if (!this.manager) throw new BadRequest("there is no manager yet: start comes first");
        return this.perform(this.manager, request);
    }
  }

  perform(manager, request) {
    switch (request.op) {
      case "admit":
        return granted(manager.admit(request.sequence, request.tokens, request.limit), (admitted) => ({
          outcome: "admitted",
          ...admitted,
        }));
      case "reserve":
        return granted(manager.reserve(request.sequence, request.count), (table) => ({ outcome: "reserved", table }));
      case "commit":
        return { outcome: "committed", tables: manager.commit(request.sequences) };
      case "append":
        manager.append(request.sequence, request.token);
        return { outcome: "appended" };
      case "release":
        manager.release(request.sequence);
        return { outcome: "released" };
      case "snapshot":
        return snapshot(manager);
      default:
        throw new BadRequest(`unknown request: ${request.op}`);
    }
  }

  /** The chain hash does not depend on a manager, but a planted fault may change it. */
  hash({ tokens, parent }) {
    const manager = new this.Manager({ blocks: 1, block_size: 1 });
    return manager.hash(tokens, parent === null ? null : BigInt(parent));
  }
}

function granted(answer, encode) {
  return answer instanceof Refused ? { outcome: "refused", reason: answer.reason } : encode(answer);
}

function snapshot({ blocks, free, index }) {
  const ids = [...blocks.keys()];
  return {
    outcome: "snapshot",
    free: [...free],
    used: ids.filter((id) => blocks[id].references > 0),
    references: blocks.map((block) => block.references),
    hashes: blocks.map((block) => block.prefix && text(block.prefix.key)),
    contents: blocks.map((block) => block.prefix?.tokens ?? []),
    index: [...index].sort(([one], [other]) => (one < other ? -1 : 1)).map(([key, id]) => [text(key), id]),
  };
}

/** A request that makes no sense gets a clear error; anything else that is thrown is an accident, and is told apart. */
function answerTo(session, line) {
  try {
    return session.answer(JSON.parse(line));
  } catch (error) {
    return { outcome: "failed", error: `${error.message}`, clear: error instanceof BadRequest };
  }
}

/** Written out at once: the next request of the batch may change the table that an answer shows. */
const answerLine = (session, line) => `${JSON.stringify(answerTo(session, line))}\n`;

/** Answers whatever has arrived, in one write: requests come in batches. */
function serve(session) {
  const chunk = Buffer.alloc(1 << 16);
  let rest = "";
  for (;;) {
    const length = readSync(0, chunk);
    if (!length) return;
    const lines = (rest + chunk.toString("latin1", 0, length)).split("\n");
    rest = lines.pop();
    const answers = lines.map((line) => answerLine(session, Buffer.from(line, "latin1").toString()));
    if (answers.length) write(answers.join(""));
    if (answers.includes(STOPPED)) return;
  }
}

function write(output) {
  const bytes = Buffer.from(output);
  for (let written = 0; written < bytes.length; ) written += writeSync(1, bytes, written);
}

const [option, fault] = process.argv.slice(2);
if (option !== undefined && (option !== "--fault" || !(fault in FAULTS))) {
  console.error(`usage: main.js [--fault NAME], NAME being one of ${Object.keys(FAULTS).join(", ")}`);
  process.exit(2);
}
serve(new Session(fault ? FAULTS[fault] : BlockManager));
