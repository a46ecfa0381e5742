//! [`Chunk`]: a text in pieces that can be found, cut where a reader would pause.
//!
//! Pieces are slices of the text, in order, and together they are all of it: headings begin a piece, paragraphs are kept
//! whole, and only a paragraph that is too long is cut, where a sentence or at least a word ends. There the next piece
//! begins with the last words of the one before, so that what stands at the cut is found, too.

use std::rc::Rc;

use super::kind::Kind;

/// How long a piece is at most, in characters.
pub(crate) const ROOM: usize = 1_200;
/// A heading begins a new piece if the present one has at least so many characters.
const ENOUGH: usize = 400;
/// How much of the piece before is repeated at a cut, in characters.
const OVERLAP: usize = 150;
/// How much of headings is remembered, in characters.
const HEADING: usize = 200;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// What it says.
    pub(crate) text: &'a str,
    /// How many bytes at its beginning are the end of the piece before.
    pub(crate) lead: usize,
    /// Where what is new in it begins, in characters of the whole text.
    pub(crate) start: usize,
    /// How many characters of it are new.
    pub(crate) length: usize,
    /// The headings that it stands under, outermost first.
    pub(crate) heading: String,
    /// The line of its first character, from 1.
    pub(crate) first_line: usize,
    /// The line of its last character.
    pub(crate) last_line: usize,
}

/// Lines that belong together: a paragraph with the empty lines after it, or a row of a table.
struct Block {
    start: usize,
    end: usize,
    characters: usize,
    heading: Rc<str>,
    /// It begins with a heading.
    heads: bool,
}

/// All pieces of a text.
pub(crate) fn chunks(text: &str, kind: Kind) -> Vec<Chunk<'_>> {
    let mut cutter = Cutter { text, kind, chunks: Vec::new(), open: None, at: 0, character: 0, line: 1 };
    blocks(text, kind, |block| cutter.block(block));
    cutter.close();
    cutter.chunks
}

struct Cutter<'a> {
    text: &'a str,
    kind: Kind,
    chunks: Vec<Chunk<'a>>,
    /// What is gathered for the next piece.
    open: Option<Block>,
    /// Where the last piece ended: in bytes, in characters, and on which line.
    at: usize,
    character: usize,
    line: usize,
}

impl<'a> Cutter<'a> {
    /// Adds a block to the piece that is open, or begins another.
    fn block(&mut self, block: Block) {
        if let Some(open) = &mut self.open
            && open.characters + block.characters <= ROOM
            && !(block.heads && open.characters >= ENOUGH)
        {
            open.end = block.end;
            open.characters += block.characters;
            return;
        }
        self.close();
        match block.characters > ROOM {
            true => self.long(&block),
            false => self.open = Some(block),
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.piece(open.start, open.end, &open.heading);
        }
    }

    /// The piece from `from`, which may be before the end of the last one.
    fn piece(&mut self, from: usize, end: usize, heading: &str) {
        let (lead, fresh) = (&self.text[from..self.at], &self.text[self.at..end]);
        let text = &self.text[from..end];
        let first_line = self.line - lines(lead);
        let length = fresh.chars().count();
        let whole = text.trim_end_matches('\n');
        let last_line = first_line + lines(whole);
        self.chunks.push(Chunk {
            text,
            lead: lead.len(),
            start: self.character,
            length,
            heading: heading.to_owned(),
            first_line,
            last_line,
        });
        self.at = end;
        self.character += length;
        self.line += lines(fresh);
    }

    /// A block that is too long for one piece.
    fn long(&mut self, block: &Block) {
        let mut from = block.start;
        loop {
            let rest = &self.text[from..block.end];
            let cut = cut(rest, self.kind);
            self.piece(from, from + cut, &block.heading);
            if from + cut == block.end {
                return;
            }
            from += back(rest, cut);
        }
    }
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Where to cut a text that may be too long: after at most [`ROOM`] characters, in the second half of them.
fn cut(text: &str, kind: Kind) -> usize {
    let (mut sentence, mut line, mut word) = (None, None, None);
    let mut before = ' ';
    for (count, (at, c)) in text.char_indices().enumerate() {
        if count == ROOM {
            let by_lines = matches!(kind, Kind::Code | Kind::Csv | Kind::Json);
            let best = if by_lines { line.or(sentence) } else { sentence.or(line) };
            return best.or(word).unwrap_or(at);
        }
        if count >= ROOM / 2 {
            let after = at + c.len_utf8();
            if c == '\n' {
                line = Some(after);
            }
            if matches!(c, '。' | '！' | '？') || (c.is_whitespace() && matches!(before, '.' | '!' | '?'))
            {
                sentence = Some(after);
            }
            if c.is_whitespace() {
                word = Some(after);
            }
        }
        before = c;
    }
    text.len()
}

/// Where the piece after a cut begins: a few words before it.
fn back(text: &str, cut: usize) -> usize {
    let mut earliest = cut;
    let mut word = None;
    for (at, c) in text[..cut].char_indices().rev().take(OVERLAP) {
        if c.is_whitespace() && at + c.len_utf8() < cut {
            word = Some(at + c.len_utf8());
        }
        earliest = at;
    }
    // A text without spaces is repeated from anywhere.
    word.unwrap_or(earliest)
}

/// Hands each block of a text to `each`.
fn blocks(text: &str, kind: Kind, mut each: impl FnMut(Block)) {
    let with_headings = matches!(kind, Kind::Markdown | Kind::Html);
    let columns = if kind == Kind::Csv { text.lines().next().unwrap_or_default() } else { "" };
    let mut under: Rc<str> = shorten(columns);
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut fence: Option<&str> = None;
    let mut block: Option<Block> = None;
    // Whether the block has ended, and whether it is a heading with nothing under it yet.
    let (mut ended, mut bare) = (true, false);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let head = if with_headings && fence.is_none() { heading(line) } else { None };
        if let Some((level, name)) = head {
            path.retain(|(above, _)| *above < level);
            path.push((level, name));
            under = shorten(&path.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(" > "));
        }
        if with_headings {
            fence = fenced(fence, words);
        }
        let apart = head.is_some() || kind == Kind::Csv || (ended && !words.is_empty());
        match &mut block {
            Some(block) if !apart => {
                block.end += line.len();
                block.characters += line.chars().count();
            }
            _ => {
                let next = Block {
                    start: at,
                    end: at + line.len(),
                    characters: line.chars().count(),
                    heading: under.clone(),
                    heads: head.is_some(),
                };
                if let Some(done) = block.replace(next) {
                    each(done);
                }
            }
        }
        // What follows a heading directly belongs to it, and nothing within code is apart.
        bare = head.is_some() || (bare && words.is_empty());
        ended = words.is_empty() && fence.is_none() && !bare;
        at += line.len();
    }
    if let Some(last) = block {
        each(last);
    }
}

/// The level and the words of a heading, as in Markdown.
fn heading(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim();
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let name = line[level..].strip_prefix([' ', '\t'])?.trim().trim_end_matches('#').trim();
    ((1..=6).contains(&level) && indent < 4 && !name.is_empty()).then_some((level, name))
}

/// Whether the lines after this one are within a block of code, and what ends it.
fn fenced<'a>(fence: Option<&'a str>, words: &'a str) -> Option<&'a str> {
    match fence {
        Some(begun) => {
            (!(words.starts_with(begun) && words.bytes().all(|b| b == begun.as_bytes()[0]))).then_some(begun)
        }
        None => ["```", "~~~"].into_iter().find(|mark| words.starts_with(mark)),
    }
}

fn shorten(heading: &str) -> Rc<str> {
    heading.chars().take(HEADING).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What must hold of every text.
    fn check(text: &str, kind: Kind) -> Vec<Chunk<'_>> {
        let all = chunks(text, kind);
        let whole: String = all.iter().map(|chunk| &chunk.text[chunk.lead..]).collect();
        assert_eq!(whole, text, "the pieces are the text");
        let mut start = 0;
        for chunk in &all {
            assert!(chunk.text.chars().count() <= ROOM, "{} characters", chunk.text.chars().count());
            assert_eq!((chunk.start, chunk.length > 0), (start, true));
            start += chunk.length;
            assert!(chunk.text[..chunk.lead].chars().count() <= OVERLAP);
            let begin = chunk.text.as_ptr() as usize - text.as_ptr() as usize;
            assert_eq!(chunk.first_line, 1 + lines(&text[..begin]));
            assert!(chunk.last_line >= chunk.first_line && chunk.last_line <= text.lines().count().max(1));
        }
        assert_eq!(all, chunks(text, kind), "the same every time");
        all
    }

    #[test]
    fn any_text_comes_back_whole() {
        let parts = [
            "a",
            "word ",
            "Sentence one. ",
            "ü",
            "漢字。",
            "\n",
            "\n\n",
            "# Head\n",
            "## Sub\n",
            "```\n",
            "🦀",
            "\t",
            "   ",
            "x,y\n",
            "long".repeat(400).leak(),
            "w ".repeat(700).leak(),
            "Many. ".repeat(300).leak(),
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..60 {
            let text: String = (0..random.usize(0..30)).map(|_| random.choice(parts).unwrap()).collect();
            for kind in [Kind::Plain, Kind::Markdown, Kind::Csv, Kind::Code, Kind::Json] {
                check(&text, kind);
            }
        }
        assert!(check("", Kind::Plain).is_empty());
        let blank = format!("# Head\n{}end", "\n".repeat(300_000));
        assert_eq!(chunks(&blank, Kind::Markdown).iter().map(|chunk| chunk.length).sum::<usize>(), 300_010);
    }

    #[test]
    fn headings_begin_pieces_and_are_remembered() {
        let body = "Some words that say something. ".repeat(20);
        let text =
            format!("# Book\n\n{body}\n\n## One\n{body}\n\n```\n# no heading\n```\n\n## Two ##\n\n{body}");
        let found = check(&text, Kind::Markdown);
        let headings: Vec<_> = found.iter().map(|chunk| chunk.heading.as_str()).collect();
        assert_eq!(headings, ["Book", "Book > One", "Book > Two"]);
        assert!(found[1].text.starts_with("## One") && found[1].text.contains("# no heading"));
        assert_eq!((found[0].first_line, found[1].first_line, found[1].last_line), (1, 5, 10));
    }

    #[test]
    fn short_sections_share_a_piece_and_paragraphs_stay_whole() {
        let text: String = (0..10).map(|n| format!("# Part {n}\n\nshort\n\n")).collect();
        assert_eq!(check(&text, Kind::Markdown).len(), 1);
        let paragraph = format!("{}\n\n", "word ".repeat(100).trim_end());
        let found = check(&paragraph.repeat(5), Kind::Plain).iter().map(|c| c.lead).collect::<Vec<_>>();
        assert_eq!(found, [0, 0, 0], "two by two, and nothing is cut");
    }

    #[test]
    fn a_long_paragraph_is_cut_where_a_sentence_ends() {
        let text = "The tide comes in and the tide goes out again today. ".repeat(60);
        let found = check(&text, Kind::Plain);
        assert!(found.len() > 2);
        for (at, chunk) in found.iter().enumerate() {
            assert!(chunk.text.trim_end().ends_with('.'), "{:?}", chunk.text);
            assert_eq!(chunk.lead > 0, at > 0);
        }
        let columns = check("name,age\nAnn,1\n", Kind::Csv);
        assert_eq!(columns[0].heading, "name,age");
    }
}
