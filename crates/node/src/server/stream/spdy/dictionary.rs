//! What both sides of SPDY/3 know before the first header: words that are often in them.
//!
//! Given by the protocol (draft 3, section 2.6.10.1): each word after its length, then words that
//! are seldom whole values.

const WORDS: &str = "\
options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|\
accept-language|accept-ranges|age|allow|authorization|cache-control|connection|\
content-base|content-encoding|content-language|content-length|content-location|\
content-md5|content-range|content-type|date|etag|expect|expires|from|host|\
if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|\
last-modified|location|max-forwards|pragma|proxy-authenticate|\
proxy-authorization|range|referer|retry-after|server|te|trailer|\
transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|method|\
get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin";

const REST: &str = "\
10010120120220520630030230330430530630740240540640740840941041141241341441541641\
7502504505203 Non-Authoritative Information204 No Content301 Moved Permanently40\
0 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error\
501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept O\
ct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag\
e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/\
javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1\
,utf-,*,enq=0.";

/// The dictionary of the header compression.
pub(super) fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS.split('|') {
        let length = u32::try_from(word.len()).unwrap_or_default();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    bytes.extend_from_slice(REST.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionary_matches_the_spdy_specification() {
        let bytes = dictionary();
        assert_eq!(bytes.len(), 1423);
        // Adler-32, by which zlib streams name their dictionary.
        let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65521;
            (low, (high + low) % 65521)
        });
        assert_eq!((high << 16) | low, 0xe3c6a7c2);
    }
}
